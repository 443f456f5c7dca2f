// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The statistics of a Worker and of its queues, and the jobs that it runs.

#include <orizuru/jobs/job_time.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace orizuru {

/// Outcomes of the jobs so far.
struct WorkerStatistics {
    std::uint64_t succeeded = 0; ///< handled and acked
    std::uint64_t failed = 0;    ///< failed attempts, so one job may count several times
    std::uint64_t died = 0;      ///< gone to the dead list
    std::uint64_t expired = 0;   ///< gone unhandled: nobody needs them any more
    std::uint64_t settled = 0;   ///< by their handlers, without a failure
    std::uint64_t requeued =
        0; ///< not done, or interrupted, when the worker shut down; left undone
    std::uint64_t discarded = 0; ///< gone after their last failure, not to the dead list
};

/// Lengths of runs or waits: their sum, and their number by length.
struct Durations {
    /// The first bucket has those of up to 1 ms, since enqueued_at is no finer; each further one
    /// those of up to four times as long, so that 15 bounds reach from there to three days; the
    /// last one has all longer ones. One width for all: counts of any workers can be added up.
    static constexpr std::size_t buckets = 16;

    std::chrono::microseconds sum{};             ///< the sum of all
    std::array<std::uint64_t, buckets> counts{}; ///< for each bucket, those in it alone

    /// Returns the bound of a bucket other than the last.
    [[nodiscard]] static constexpr std::chrono::milliseconds bound(std::size_t bucket) noexcept {
        return std::chrono::milliseconds(std::int64_t{1} << 2 * bucket);
    }
};

/// The statistics of one queue's jobs.
struct QueueStatistics {
    std::string queue;              ///< its name
    WorkerStatistics outcomes = {}; ///< counts of its jobs
    /// The runs of handlers, with their middleware, except those that a shutdown interrupted. The
    /// runs of a batch are as long as the batch's.
    Durations runs = {};
    /// Time a job had been due when such a run began, by Redis' clock.
    Durations waits = {};
};

/// A job that one of the worker's threads runs, or that is in flight (JobDone).
struct RunningJob {
    std::optional<std::size_t> thread; ///< from 0; empty: it is in flight
    std::string queue;                 ///< name of the queue that it was taken from
    std::string job_id;                ///< Job::id
    int attempt = 0;                   ///< number of this try, from 1
    /// Time at which its handler began; before that, at which it was taken.
    std::chrono::steady_clock::time_point since{};
    double progress = 0; ///< the last fraction that its handler has published
};

/// A job that a worker has reported to run.
struct ReportedJob {
    std::string id; ///< Job::id
    /// Time at which its handler began; before that, at which it was taken. By Redis' clock.
    JobTime since;
};

/// Describes the job in a line for a log.
[[nodiscard]] inline std::string to_string(const RunningJob& job) {
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - job.since);
    return (job.thread ? "thread " + std::to_string(*job.thread) : std::string("in flight")) +
           ": job " + job.job_id + " of '" + job.queue + "', attempt " +
           std::to_string(job.attempt) + ", for " + std::to_string(time.count()) + " ms, " +
           std::to_string(static_cast<int>(100 * job.progress)) + " % done";
}

} // namespace orizuru
