// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Counts what became of a job, and tells it to WorkerOptions::on_event.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/settling/settled_run.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <chrono>
#include <optional>
#include <string_view>

namespace orizuru::detail {

/// Call it with the guard unlocked.
class JobReports {
  public:
    /// `queue` outlives it.
    JobReports(ServedQueue& queue, SettledRun run) : m_queue(queue), m_run(run) {}

    void tell(WorkerEventKind kind, std::string_view detail = {},
              std::optional<std::chrono::milliseconds> retry_in = {}) const noexcept;
    void succeeded() const noexcept;
    void expired() const noexcept;
    void requeued() const noexcept;
    void discarded(std::string_view reason) const;
    void died(std::string_view reason) const;
    /// Does the same as died, by the reason of the handler that has buried the job.
    void buried() const;
    /// Another worker has the job, and those of its burst before it.
    void lost() const;
    /// The job has ended by itself, and was to be cancelled.
    void cancelled_too_late() const;

    /// Calls `action`, which returns a bool. Tells what it throws, and returns false then: no other
    /// job of a batch suffers.
    template <class Action>
    [[nodiscard]] bool attempt(Action action) const noexcept {
        try {
            return action();
        } catch (...) {
            tell_thrown([this](std::string_view what) { tell(WorkerEventKind::unsettled, what); });
        }
        return false;
    }

  private:
    [[nodiscard]] std::string_view payload() const;

    ServedQueue& m_queue;
    SettledRun m_run;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/worker/settling/job_reports.ipp>
#endif
