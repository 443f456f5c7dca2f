// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs a handler inside the worker's middleware, within its time limit, under the eyes of the
// observers.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/forked_child.hpp>
#include <orizuru/detail/worker/handling.hpp>
#include <orizuru/detail/worker/reports/observed_runs.hpp>
#include <orizuru/detail/worker/stops/time_limits.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace orizuru::detail {

/// Marks the jobs of one call of a handler, which has a time limit or none, until its end.
class HandlerCall {
  public:
    HandlerCall(WorkerShared& shared, std::span<JobRun* const> jobs,
                std::optional<std::chrono::milliseconds> time_limit)
        : m_jobs(jobs) {
        if (time_limit) {
            m_limit.emplace(shared.time_limits, shared.stop.get_token(), *time_limit);
        }
        for (JobRun* const job : m_jobs) {
            job->m_stage = JobRun::Stage::begun;
            if (m_limit) {
                job->m_stop.limit_to(m_limit->stop());
            }
        }
    }
    HandlerCall(const HandlerCall&) = delete;
    HandlerCall& operator=(const HandlerCall&) = delete;
    ~HandlerCall() {
        if (m_limit) {
            end(Clock::now());
        }
    }

    /// The handler ended at that time.
    void end(TimePoint at) noexcept {
        const bool exceeded = this->exceeded(at);
        if (!m_limit) {
            return;
        }
        for (JobRun* const job : m_jobs) {
            job->m_stop.limit_to({});
            if (exceeded) {
                job->m_stage = JobRun::Stage::out_of_time;
            }
        }
        m_limit.reset();
    }
    /// True if it took too long until that time.
    [[nodiscard]] bool exceeded(TimePoint at) const noexcept {
        return m_limit && m_limit->exceeded(at);
    }

    /// The outcome of a call that has ended by this exception. `job` is one of its jobs.
    [[nodiscard]] static Handling failed(const JobRun& job, std::exception_ptr error) {
        ThrownFailure failure = failure_of(error);
        Handling handling;
        handling.interrupted = interrupted(job, failure);
        handling.error = std::move(error);
        handling.thrown = std::move(failure.reason);
        handling.action = failure.action;
        handling.for_good = failure.last;
        return handling;
    }

    /// True if the run counts as none: its worker shuts down, or it was left undone.
    [[nodiscard]] static bool undone(const JobRun& job, const Handling& handling) noexcept {
        return handling.interrupted && !job.failure();
    }
    /// The reason for which the run has failed, time limits left out; empty when it has not.
    [[nodiscard]] static const std::optional<std::string>&
    reason(const JobRun& job, const Handling& handling) noexcept {
        return job.failure() ? job.failure() : handling.thrown;
    }

  private:
    /// True if what it threw says no more than that the worker shuts down.
    [[nodiscard]] static bool interrupted(const JobRun& job, const ThrownFailure& thrown) {
        return thrown.action == RetryDecision::Action::by_policy && !thrown.last &&
               job.m_stage != JobRun::Stage::out_of_time &&
               job.m_host->stop_token().stop_requested();
    }

    std::span<JobRun* const> m_jobs;
    std::optional<TimeLimits::Limit> m_limit;
};

template <class Handle>
void run_in_middleware(const WorkerShared& shared, JobRun& job, const Handle& handle,
                       std::size_t outermost = 0) {
    const auto& around = shared.options.handle_middleware;
    if (outermost == around.size()) {
        handle();
    } else {
        const EndOfForks end(shared.process);
        around[outermost](job, [&] { run_in_middleware(shared, job, handle, outermost + 1); });
    }
}

/// Middleware sees the first job. The limit is the handler's alone.
template <class Handle>
Handling handle_in_middleware(WorkerShared& shared, std::span<JobRun* const> jobs,
                              std::optional<std::chrono::milliseconds> time_limit,
                              const Handle& handle) {
    Handling handling;
    ObservedRuns observed(shared, jobs);
    try {
        run_in_middleware(shared, *jobs.front(), [&] {
            const HandlerCall call(shared, jobs, time_limit);
            const EndOfForks end(shared.process); // before the call's end, which locks
            handle();
        });
    } catch (...) {
        handling = HandlerCall::failed(*jobs.front(), std::current_exception());
    }
    handling.ended = Clock::now();
    observed.end(handling);
    return handling;
}

} // namespace orizuru::detail
