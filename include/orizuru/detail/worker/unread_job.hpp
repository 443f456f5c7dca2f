// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job whose envelope could be read and whose payload there was no memory to decode. That is a
// failed attempt of the job: the retry policy says when the next one is. No handler has begun.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/job_settling_steps.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/worker_queue.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/worker/job_context.hpp>

#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::detail {

class UnreadJob final : public Task {
  public:
    /// `make_guard` returns the guard of `job`, whose payload is not looked at. It is called last:
    /// nothing throws when the message is out of its consumer's hands.
    template <std::invocable MakeGuard>
    UnreadJob(WorkerQueue& queue, std::string why, const Job<Raw>& job, MakeGuard make_guard)
        : m_why(std::move(why)), m_context(queue, job, make_guard), m_settling(queue, m_context) {}

    void run() noexcept override { m_settling.fail_unread(m_why); }
    [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept override {
        return m_settling.retry_at();
    }
    void try_again() noexcept override { m_settling.try_again(); }
    void give_back(std::chrono::milliseconds patience) noexcept override {
        m_settling.give_back(patience);
    }
    [[nodiscard]] const JobRun& job() const noexcept override { return m_context; }

  private:
    std::string m_why;
    JobContext<Raw> m_context;
    JobSettling<Raw> m_settling;
};

} // namespace orizuru::detail
