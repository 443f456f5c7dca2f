// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The clocks of deadlines and of leases, and times as people read them.

#include <orizuru/detail/base/system.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

namespace orizuru::detail {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

/// The clock of leases. While the host is asleep it goes on, as Redis' clock does; steady_clock may
/// stand still then. A virtual machine does not see that its hypervisor has paused it.
struct LeaseClock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<LeaseClock>;
    static constexpr bool is_steady = true;

    [[nodiscard]] static time_point now() noexcept {
        timespec time{};
        if (::clock_gettime(system::lease_clock, &time) == 0) {
            return time_point(std::chrono::seconds(time.tv_sec) +
                              std::chrono::nanoseconds(time.tv_nsec));
        }
        return time_point(Clock::now().time_since_epoch());
    }
};

/// The deadline `time` from now; 100 years or more mean never.
[[nodiscard]] inline TimePoint deadline_in(std::chrono::milliseconds time) {
    constexpr std::chrono::hours never(24 * 365 * 100);
    return time >= never ? TimePoint::max()
                         : Clock::now() + std::max(time, std::chrono::milliseconds(0));
}

[[nodiscard]] inline std::int64_t milliseconds_since(TimePoint time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - time).count();
}

/// ISO 8601 in UTC, as 2026-03-01T08:05:00.250Z. `time` is in the years 0 to 9999.
[[nodiscard]] inline std::string utc_text(std::chrono::sys_time<std::chrono::milliseconds> time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss clock(time - day);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                  static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                  static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                  static_cast<int>(clock.minutes().count()),
                  static_cast<int>(clock.seconds().count()),
                  static_cast<int>(clock.subseconds().count()));
    return text.data();
}

} // namespace orizuru::detail
