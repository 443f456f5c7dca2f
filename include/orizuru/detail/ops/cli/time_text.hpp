// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Moments and lengths of time as people and programs read them.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail::cli {

/// At least so many digits.
[[nodiscard]] inline std::string padded(std::uint64_t number, std::size_t digits) {
    const Digits text(number);
    const std::string_view shown = text;
    return std::string(digits - std::min(digits, shown.size()), '0').append(shown);
}

/// ISO 8601 in UTC, as 2026-03-01T08:05:00.250Z; what is beyond the year 9999 is its end, and what
/// is before the year 0 its begin.
[[nodiscard]] inline std::string iso_time(JobTime time) {
    using namespace std::chrono;
    const JobTime first = sys_days(year(0) / 1 / 1);
    return utc_text(std::clamp(time, first, latest_job_time));
}

/// The two largest units: 350ms, 12s, 3m12s, 4h05m, 3d04h; a minus before what is negative.
[[nodiscard]] inline std::string brief_time(std::chrono::milliseconds time) {
    const bool negative = time.count() < 0;
    const auto ms = static_cast<std::uint64_t>(negative ? -time.count() : time.count());
    const std::uint64_t seconds = ms / 1000;
    const std::string_view sign = negative ? "-" : "";
    if (ms < 1000) {
        return joined({sign, Digits(ms), "ms"});
    }
    if (seconds < 60) {
        return joined({sign, Digits(seconds), "s"});
    }
    if (seconds < 3600) {
        return joined({sign, Digits(seconds / 60), "m", padded(seconds % 60, 2), "s"});
    }
    if (seconds < 86400) {
        return joined({sign, Digits(seconds / 3600), "h", padded(seconds / 60 % 60, 2), "m"});
    }
    return joined({sign, Digits(seconds / 86400), "d", padded(seconds / 3600 % 24, 2), "h"});
}

/// A dash when there is none.
[[nodiscard]] inline std::string optional_text(std::optional<JobTime> time) {
    return time ? iso_time(*time) : "-";
}
[[nodiscard]] inline std::string optional_text(std::optional<std::chrono::milliseconds> time) {
    return time ? brief_time(*time) : "-";
}

/// From a number with a unit: 250ms, 90s, 15m, 1h, 7d; nothing when the text is something else, or
/// more than 100 years.
[[nodiscard]] inline std::optional<std::chrono::milliseconds> to_length(std::string_view text) {
    constexpr std::uint64_t longest = 36'500;
    constexpr std::array<std::pair<std::string_view, std::uint64_t>, 5> units{
        {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::optional<std::uint64_t> number = whole_number(text.substr(0, digits));
    for (const auto& [unit, milliseconds] : units) {
        if (number && text.substr(digits) == unit &&
            *number <= longest * 86'400'000 / milliseconds) {
            return std::chrono::milliseconds(*number * milliseconds);
        }
    }
    return std::nullopt;
}

} // namespace orizuru::detail::cli
