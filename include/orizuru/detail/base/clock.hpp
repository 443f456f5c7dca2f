// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The clock of all deadlines and durations.

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace orizuru::detail {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

/// The deadline `time` from now; 100 years or more mean never.
[[nodiscard]] inline TimePoint deadline_in(std::chrono::milliseconds time) {
    constexpr std::chrono::hours never(24 * 365 * 100);
    return time >= never ? TimePoint::max()
                         : Clock::now() + std::max(time, std::chrono::milliseconds(0));
}

[[nodiscard]] inline std::int64_t milliseconds_since(TimePoint time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - time).count();
}

} // namespace orizuru::detail
