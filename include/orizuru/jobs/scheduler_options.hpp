// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a Scheduler.

#include <orizuru/detail/base/arguments.hpp>

#include <chrono>

namespace orizuru {

/// Options of a Scheduler.
struct SchedulerOptions {
    /// The longest time, on average, between two looks by all schedulers of a queue together, in
    /// case the one that was woken has died. 100 ms to 24 h.
    std::chrono::milliseconds poll = std::chrono::seconds(5);
};

namespace detail {

/// Throws std::invalid_argument.
inline void validate(const SchedulerOptions& options) {
    check_time("poll", options.poll, std::chrono::milliseconds(100));
}

} // namespace detail

} // namespace orizuru
