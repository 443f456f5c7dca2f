// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of worker_metrics.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace orizuru {

ORIZURU_INLINE std::string prometheus(const Worker& worker) {
    const std::vector<RunningJob> running = worker.running();
    const auto busy = static_cast<std::size_t>(std::ranges::count_if(
        running, [](const RunningJob& job) { return job.thread.has_value(); }));
    const std::size_t all = std::max(worker.threads(), busy); // it may just have begun
    constexpr std::string_view name = "orizuru_worker_threads";
    constexpr std::string_view in_flight = "orizuru_worker_jobs_in_flight";
    return detail::joined({prometheus(worker.queue_statistics()),
                           "# HELP ",
                           name,
                           " What the worker's threads do.\n# TYPE ",
                           name,
                           " gauge\n",
                           name,
                           "{state=\"busy\"} ",
                           detail::Digits(busy),
                           "\n",
                           name,
                           "{state=\"idle\"} ",
                           detail::Digits(all - busy),
                           "\n# HELP ",
                           in_flight,
                           " Jobs that handlers have begun and that end later.\n# TYPE ",
                           in_flight,
                           " gauge\n",
                           in_flight,
                           " ",
                           detail::Digits(running.size() - busy),
                           "\n"});
}

} // namespace orizuru
