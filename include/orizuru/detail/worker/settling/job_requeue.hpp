// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Gives a job back to its queue, where it is served next: when the worker stops before the job
// ends, and when no thread is free for it.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/settling/job_reports.hpp>
#include <orizuru/detail/worker/settling/settled_run.hpp>

#include <chrono>
#include <exception>
#include <optional>

namespace orizuru::detail {

/// Any thread: of those that settle the job, the guard's lock lets one do so.
class JobRequeue {
  public:
    /// `queue` outlives it.
    JobRequeue(ServedQueue& queue, SettledRun run) : m_queue(queue), m_run(run) {}

    /// Requeues the job, unless it is settled. Waits up to `patience` for the guard.
    void run(std::chrono::milliseconds patience) const noexcept;
    /// Takes the message of a job that does not end in time back from its guard, to be requeued
    /// with others: waits for the guard until then. Empty if the job is settled. Without a session
    /// if it only begins to requeue the job, whose attributes have changed: finish() waits for the
    /// end of that.
    [[nodiscard]] std::optional<GuardCore::GivenUp> begin(TimePoint until) const noexcept;
    void finish() const noexcept;
    /// The job as it was, or with the attributes that its run has changed. With the guard locked.
    [[nodiscard]] Settlement settlement(const GuardCore& guard) const;

  private:
    bool begin(GuardCore& guard, std::exception_ptr& problem) const noexcept;
    [[nodiscard]] JobReports reports() const { return {m_queue, m_run}; }

    ServedQueue& m_queue;
    SettledRun m_run;
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/worker/settling/job_requeue.ipp>
#endif
