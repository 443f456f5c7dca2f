// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of worker_metrics.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

#include <algorithm>
#include <cstddef>

namespace orizuru {

ORIZURU_INLINE std::string prometheus(const Worker& worker) {
    const std::size_t busy = worker.running().size();
    const std::size_t all = std::max(worker.threads(), busy); // it may just have begun
    return detail::joined({prometheus(worker.queue_statistics()),
                           "# HELP orizuru_worker_threads What the worker's threads do.\n"
                           "# TYPE orizuru_worker_threads gauge\n"
                           "orizuru_worker_threads{state=\"busy\"} ",
                           detail::Digits(busy), "\norizuru_worker_threads{state=\"idle\"} ",
                           detail::Digits(all - busy), "\n"});
}

} // namespace orizuru
