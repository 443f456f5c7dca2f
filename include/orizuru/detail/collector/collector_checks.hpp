// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Checks what a collector is given, before it sends anything.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/redis/limits.hpp>
#include <orizuru/detail/redis/scripts/write_series.hpp>
#include <orizuru/garbage_collector_options.hpp>

#include <chrono>
#include <stdexcept>

namespace orizuru::detail {

/// Throws std::invalid_argument for an interval that is not positive.
inline void check_interval(std::chrono::milliseconds interval) {
    if (interval <= std::chrono::milliseconds(0)) {
        throw std::invalid_argument("the collector's interval must be positive");
    }
}

/// Throws std::invalid_argument for invalid options.
inline void validate(const GarbageCollectorOptions& options) {
    check_count("batch", options.batch, largest_batch);
    if (options.blamed < 1) {
        throw std::invalid_argument("blamed must be 1 or more");
    }
    if (options.max_recoveries < 0 || options.dead_limit < 0 || options.grace.count() < 0) {
        throw std::invalid_argument("max_recoveries, dead_limit and grace must not be negative");
    }
    if (options.grace > mark_gap) {
        throw std::invalid_argument("grace must be 24 h at most");
    }
}

} // namespace orizuru::detail
