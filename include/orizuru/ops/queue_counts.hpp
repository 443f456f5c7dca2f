// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The reports of workers about the jobs of a queue, as an Inspector reads them.

#include <orizuru/jobs/job_time.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace orizuru {

/// Outcomes of a queue's jobs on one day.
struct DayCounts {
    std::chrono::sys_days day;      ///< in UTC, by Redis' clock
    WorkerStatistics outcomes = {}; ///< jobs of all workers; zeros if none ended
};

/// The last report of a worker.
struct WorkerReport {
    /// The worker's consumer of this queue; `label:host:pid:` are its first parts.
    std::string consumer_id;
    JobTime started; ///< by Redis' clock, as the worker knew it
    /// Number of this queue's jobs or batches that it ran then.
    std::uint64_t running = 0;
    std::uint64_t threads = 0; ///< for all of its queues
    bool in_batches = false;   ///< its handler gets several jobs at once
    /// The jobs that it ran then, up to 100, the oldest run first.
    std::vector<ReportedJob> runs = {};
    /// Since it began.
    QueueStatistics jobs = {};
};

} // namespace orizuru
