// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// An observer that writes a line for each run of a job.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/line_writer.hpp>
#include <orizuru/worker/job_observer.hpp>

#include <functional>
#include <string_view>

namespace orizuru {

/// @cond
template <class... T>
inline constexpr bool detail::included<detail::Part::log_jobs, T...> = true;
/// @endcond

/// Writes the time (UTC) and a line to stderr (descriptor 2). The default of log_jobs. Drops it
/// when stderr has no room at once, and says so later, as write_to_stderr does.
inline void write_line_to_stderr(std::string_view line) { detail::write_stderr_line(line); }

/// Returns an observer that writes a line when a run has ended, for WorkerOptions::observers:
///
///     done queue=orders job=5f0c attempt=1 waited=12ms ran=340ms attr.trace=7b0c
///     failed queue=orders job=5f0c kind=charge attempt=2 waited=9ms ran=3ms why="no such user"
///
/// with one of the outcomes of JobEnd before the rest.
///
/// `waited` counts from when this try was enqueued, by Redis' clock, and has its delay in it; `ran`
/// counts from since(). Values with a space or a quote are in quotes, and control characters
/// escaped, so that a line is a line. on_event hears of Redis' answer to the settlement, and of
/// jobs that reach no handler.
///
/// `write` is called on any thread, on one at a time for all copies; its exceptions are swallowed.
/// No job is settled before it returns.
/// Throws std::invalid_argument when it is empty.
[[nodiscard]] JobObserver
log_jobs(std::function<void(std::string_view)> write = write_line_to_stderr);

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/worker/job_log.ipp>
#endif
