// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Times of jobs, and of messages that are scheduled.

#include <algorithm>
#include <chrono>

namespace orizuru {

/// A moment in a job's life. A JobProducer and a Worker write it by Redis' clock, as far as they
/// know that; make_job and the rest by the clock of their host.
using JobTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// Now, by this host's clock.
[[nodiscard]] inline JobTime job_time() {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

namespace detail {

/// The latest and the earliest time. Beyond the year 9999 most formats need one more digit.
inline constexpr JobTime latest_job_time{std::chrono::milliseconds(253'402'300'799'999)};
inline constexpr JobTime earliest_job_time{-latest_job_time.time_since_epoch()};

/// Adds, bounded by the earliest and the latest time.
[[nodiscard]] inline JobTime later(JobTime time, std::chrono::milliseconds by) {
    return time + std::clamp(by, earliest_job_time - time, latest_job_time - time);
}

} // namespace detail

} // namespace orizuru
