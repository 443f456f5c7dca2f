// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs a handler inside the worker's middleware, and within its time limit.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/worker/time_limits.hpp>
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

/// How a run of a handler has ended.
struct Handling {
    bool begun = false;                ///< each middleware has called the next one
    std::optional<std::string> thrown; ///< the text of the exception, if any
    std::exception_ptr error = {};
    RetryDecision::Action action = RetryDecision::Action::by_policy; ///< by its type
    bool for_good = false;    ///< the exception forbids a retry
    bool interrupted = false; ///< it was thrown while the worker shuts down, and says no more
    bool out_of_time = false;
};

/// Gives the jobs of one run a time limit, as long as it exists.
class RunWithin {
  public:
    RunWithin(WorkerShared& shared, std::span<JobRun* const> jobs, std::chrono::milliseconds time)
        : m_limit(shared.time_limits, shared.stop.get_token(), time) {
        for (JobRun* const job : jobs) {
            job->m_limited = m_limit.token();
        }
    }
    [[nodiscard]] bool over() const { return m_limit.exceeded(); }

  private:
    TimeLimits::Limit m_limit;
};

template <class Handle>
void run_in_middleware(const WorkerOptions& options, JobRun& job, const Handle& handle,
                       std::size_t outermost = 0) {
    const auto& around = options.handle_middleware;
    if (outermost == around.size()) {
        handle();
    } else {
        around[outermost](job, [&] { run_in_middleware(options, job, handle, outermost + 1); });
    }
}

/// Middleware sees the first job. The limit is the handler's alone.
template <class Handle>
Handling handle_in_middleware(WorkerShared& shared, std::span<JobRun* const> jobs,
                              std::optional<std::chrono::milliseconds> time_limit,
                              const Handle& handle) {
    Handling handling;
    try {
        run_in_middleware(shared.options, *jobs.front(), [&] {
            handling.begun = true;
            if (!time_limit) {
                handle();
                return;
            }
            const RunWithin limited(shared, jobs, *time_limit);
            const auto end = at_exit([&] { handling.out_of_time = limited.over(); });
            handle();
        });
    } catch (...) {
        handling.error = std::current_exception();
        ThrownFailure failure = failure_of(handling.error);
        handling.thrown = std::move(failure.reason);
        handling.action = failure.action;
        handling.for_good = failure.last;
        handling.interrupted = failure.action == RetryDecision::Action::by_policy &&
                               !failure.last && !handling.out_of_time &&
                               shared.stop.stop_requested();
    }
    return handling;
}

} // namespace orizuru::detail
