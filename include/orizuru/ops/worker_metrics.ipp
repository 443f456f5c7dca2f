// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of worker_metrics.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace orizuru {

ORIZURU_INLINE std::string prometheus(const Worker& worker) {
    const std::size_t busy = worker.running().size();
    const std::size_t all = std::max(worker.threads(), busy); // it may just have begun
    constexpr std::string_view name = "orizuru_worker_threads";
    return detail::joined({prometheus(worker.queue_statistics()), "# HELP ", name,
                           " What the worker's threads do.\n# TYPE ", name, " gauge\n", name,
                           "{state=\"busy\"} ", detail::Digits(busy), "\n", name,
                           "{state=\"idle\"} ", detail::Digits(all - busy), "\n"});
}

} // namespace orizuru
