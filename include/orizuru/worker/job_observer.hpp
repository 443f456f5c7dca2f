// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Hooks at the begin and the end of each run of a job, for logs, traces and metrics.

#include <orizuru/worker/job_context.hpp>

#include <functional>
#include <string_view>

namespace orizuru {

/// The end of a job's run, before the worker settles the job.
struct JobEnd {
    /// Ways in which a run ends.
    enum class Outcome {
        done,    ///< the handler has returned, or called its JobDone
        failed,  ///< for the reason in `why`
        settled, ///< the handler has settled the job itself
        buried,  ///< so it has, for the reason in `why`
        requeued ///< the worker shuts down, and the run does not count
    };

    Outcome outcome = Outcome::done; ///< says if `why` is set
    std::string_view why = {};       ///< valid during the call
};

/// Called when a run of a job begins, before the handler and all middleware around it, for every
/// queue of the worker, and for each job of a batch. It returns what to call when the run has
/// ended, before the job is settled; or nothing to call:
///
///     .observers = {[](JobRun& job) {
///         return [span = tracer.start(job.queue(), job.id())](const JobEnd& end) {
///         span.end(end.why); };
///     }}
///
/// The first function is called on the thread that calls the handler, the second on any thread of
/// the worker; both on several at once, for different jobs. `job` lives until the second has
/// returned. What they throw is swallowed, and a function that there is no memory for is not
/// called.
using JobObserver = std::function<std::function<void(const JobEnd&)>(JobRun& job)>;

/// Returns "done", "failed" and so on.
[[nodiscard]] constexpr std::string_view to_string(JobEnd::Outcome outcome) noexcept {
    switch (outcome) {
    case JobEnd::Outcome::done:
        return "done";
    case JobEnd::Outcome::failed:
        return "failed";
    case JobEnd::Outcome::settled:
        return "settled";
    case JobEnd::Outcome::buried:
        return "buried";
    case JobEnd::Outcome::requeued:
        break;
    }
    return "requeued";
}

} // namespace orizuru
