// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads an element of the list of scheduled messages (schedule_source.hpp writes it).

#include <orizuru/detail/jobs/decimal_number.hpp>
#include <orizuru/detail/jobs/envelope_limits.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace orizuru::detail {

/// A message's element has a number of 8 bytes before it.
inline constexpr std::size_t scheduled_number = 8;

/// Returns nothing for what is no number. A time beyond all that are allowed, which another program
/// has scheduled, becomes the first or the last of these.
[[nodiscard]] inline std::optional<JobTime> due_time(const std::string& score) {
    const std::optional<double> number = decimal_number(score);
    if (!number) {
        return std::nullopt;
    }
    const auto bound = [](JobTime time) {
        return static_cast<double>(time.time_since_epoch().count());
    };
    return JobTime(std::chrono::milliseconds(static_cast<std::int64_t>(
        std::clamp(*number, bound(earliest_job_time), bound(latest_job_time)))));
}

} // namespace orizuru::detail
