// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The statistics of a Worker, and the jobs that it runs.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace orizuru {

/// How a worker's jobs have ended so far.
struct WorkerStatistics {
    std::uint64_t succeeded = 0; ///< handled and acked
    std::uint64_t failed = 0;    ///< failed attempts, so one job may count several times
    std::uint64_t died = 0;      ///< gone to the dead list
    std::uint64_t expired = 0;
    std::uint64_t settled = 0;  ///< by their handlers, without a failure
    std::uint64_t requeued = 0; ///< not done, or interrupted, when the worker shut down
};

/// A job that one of the worker's threads runs.
struct RunningJob {
    std::size_t thread = 0; ///< from 0
    std::string queue;
    std::string job_id;
    int attempt = 0;
    std::chrono::steady_clock::time_point since{};
    double progress = 0; ///< the last fraction that its handler has published
};

/// Describes the job in a line for a log.
[[nodiscard]] inline std::string to_string(const RunningJob& job) {
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - job.since);
    return "thread " + std::to_string(job.thread) + ": job " + job.job_id + " of '" + job.queue +
           "', attempt " + std::to_string(job.attempt) + ", for " + std::to_string(time.count()) +
           " ms, " + std::to_string(static_cast<int>(100 * job.progress)) + " % done";
}

} // namespace orizuru
