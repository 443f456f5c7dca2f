// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One run of a job on trial, which may end on another thread, or never.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/testing/trial_host.hpp>
#include <orizuru/detail/worker/handling.hpp>
#include <orizuru/detail/worker/job_middleware.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/job_done.hpp>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::detail {

/// A JobDone keeps it, and so its context, for as long as the handler may use that.
template <class T>
class TrialRun final : public UnendedRun {
  public:
    /// Throws what decoding the payload throws.
    TrialRun(std::shared_ptr<TrialHost> host, std::string payload)
        : m_host(std::move(host)),
          m_payload(std::move(payload)),
          m_context(*m_host, m_payload, m_scratch) {
        TrialAccess::begin(m_context, m_payload);
    }

    [[nodiscard]] JobContext<T>& context() noexcept { return m_context; }

    void end(std::exception_ptr error) noexcept override {
        conclude(error ? HandlerCall::failed(m_context, std::move(error)) : Handling());
    }
    void leave_undone() noexcept override { conclude({.interrupted = true}); }
    /// The handler has thrown the exception that is being handled: a JobDone has no effect then.
    void fail() noexcept {
        Handling handling = HandlerCall::failed(m_context, std::current_exception());
        const std::lock_guard lock(m_mutex);
        m_handling = std::move(handling);
    }
    [[nodiscard]] bool forked() const noexcept override { return m_mark.forked(); }

    /// Empty when it does not end in time.
    [[nodiscard]] std::optional<Handling> await(TimePoint deadline) {
        std::unique_lock lock(m_mutex);
        wait_until(m_ended, lock, deadline, [this] { return m_handling.has_value(); });
        return m_handling;
    }

  private:
    void conclude(Handling handling) noexcept {
        const std::lock_guard lock(m_mutex);
        if (!m_handling) {
            m_handling = std::move(handling);
            m_ended.notify_all();
        }
    }

    ForkMark m_mark;
    std::shared_ptr<TrialHost> m_host;
    std::string m_payload;
    Scratch m_scratch;
    JobContext<T> m_context;
    std::mutex m_mutex; ///< guards what follows
    std::optional<Handling> m_handling;
    std::condition_variable m_ended;
};

} // namespace orizuru::detail
