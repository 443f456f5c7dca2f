// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a Worker says of itself when it is asked.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace orizuru {

/// What has become of a worker's jobs so far.
struct WorkerStatistics {
    std::uint64_t succeeded = 0; ///< handled and acked
    std::uint64_t failed = 0;    ///< runs of handlers, however often a job was tried
    std::uint64_t died = 0;      ///< on the dead list
    std::uint64_t expired = 0;
    std::uint64_t settled = 0;    ///< by their handlers, which did not fail
    std::uint64_t given_back = 0; ///< not done in time when the worker stopped
};

/// A job that a thread of a worker is at.
struct RunningJob {
    std::size_t thread = 0; ///< from 0
    std::string queue;
    std::string job_id;
    int attempt = 0;
    std::chrono::steady_clock::time_point since{};
    double progress = 0; ///< as its handler has last told
};

/// A line for a log.
[[nodiscard]] inline std::string to_string(const RunningJob& job) {
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - job.since);
    return "thread " + std::to_string(job.thread) + ": job " + job.job_id + " of '" + job.queue +
           "', attempt " + std::to_string(job.attempt) + ", for " + std::to_string(time.count()) +
           " ms, " + std::to_string(static_cast<int>(100 * job.progress)) + " % done";
}

} // namespace orizuru
