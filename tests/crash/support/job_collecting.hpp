// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A process that collects what dead workers held, beside the workers, which do that, too. These let
// time pass after an outage; a collector that begins just then asks at once.

#pragma once

#include "crash/support/job_pushing.hpp"
#include "crash/support/job_work.hpp"
#include "crash/support/work.hpp"

#include <orizuru/garbage_collector.hpp>

#include <limits>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace orizuru::test {

/// Runs until it is killed.
inline void collect_jobs(const Work& work) {
    std::vector<std::jthread> collecting;
    for (const std::string& queue : job_queues(work.queue, work.queues)) {
        collecting.emplace_back([&work, queue] {
            GarbageCollectorOptions options = storm_collector(work.index);
            options.max_recoveries = std::numeric_limits<int>::max();
            options.blamed = is_urgent(queue) ? urgent_at_once : job_threads;
            connected<GarbageCollector>(work.endpoint(), queue, options)
                ->run(std::stop_token(), collecting_interval(work.queues));
        });
    }
}

} // namespace orizuru::test
