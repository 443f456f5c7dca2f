// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of cron.hpp.

#include <orizuru/detail/jobs/cron_parser.hpp>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

namespace orizuru {

namespace detail {

/// The least of the numbers from this one on.
ORIZURU_INLINE std::optional<unsigned> first_from(CronSet set, unsigned number) {
    const CronSet rest = set >> number;
    return rest == 0 ? std::nullopt
                     : std::optional(number + static_cast<unsigned>(std::countr_zero(rest)));
}
ORIZURU_INLINE bool contains(CronSet set, unsigned number) { return (set >> number & 1) != 0; }

} // namespace detail

ORIZURU_INLINE Cron::Cron(std::string expression)
    : m_expression(std::move(expression)), m_table(detail::CronParser(m_expression).parse()) {
    if (!day_from(std::chrono::local_days())) {
        detail::CronParser(m_expression).refuse("none of its months has such a day");
    }
}

ORIZURU_INLINE std::chrono::sys_seconds Cron::next(std::chrono::sys_seconds after,
                                                   const TimeZone& zone) const {
    using namespace std::chrono_literals;
    if (after < std::chrono::sys_days(0y / 1 / 1) ||
        after >= std::chrono::sys_days(10'000y / 1 / 1)) {
        throw std::invalid_argument("cron: a time that is not in the years 0 to 9999");
    }
    std::chrono::local_seconds local = zone.to_local(after);
    while (true) {
        local = next_local(local);
        // Not so while the clocks of the zone show for the second time what they showed before.
        if (const std::chrono::sys_seconds time = zone.to_sys(local); time > after) {
            return time;
        }
    }
}

// Looks back from the end, twice as far each time: all of a long time can be many.
ORIZURU_INLINE std::vector<std::chrono::sys_seconds> Cron::latest(std::chrono::sys_seconds after,
                                                                  std::chrono::sys_seconds until,
                                                                  std::size_t most,
                                                                  const TimeZone& zone) const {
    std::vector<std::chrono::sys_seconds> found;
    for (std::chrono::seconds span = std::chrono::minutes(1);; span *= 2) {
        const bool all = until - after <= span;
        found.clear();
        for (auto time = next(all ? after : until - span, zone); time <= until;
             time = next(time, zone)) {
            found.push_back(time);
        }
        if (all || found.size() >= most) {
            break;
        }
    }
    if (found.size() > most) {
        found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(most));
    }
    return found;
}

ORIZURU_INLINE std::chrono::local_seconds Cron::next_local(std::chrono::local_seconds after) const {
    using namespace std::chrono_literals;
    const std::chrono::local_seconds first = after + 1s;
    const auto today = std::chrono::floor<std::chrono::days>(first);
    const auto day = day_from(today);
    if (day == today) {
        if (const auto time = time_from(first - today)) {
            return today + *time;
        }
    }
    // There always is one: the constructor has found a day in the calendar's whole cycle.
    return *day_from(std::max(*day, today + std::chrono::days(1))) + *time_from(0s);
}

/// The first day from this one on. The calendar repeats itself, weekdays included, in 400 years.
ORIZURU_INLINE std::optional<std::chrono::local_days>
Cron::day_from(std::chrono::local_days day) const {
    const auto end = day + std::chrono::days(146'097);
    while (day < end) {
        const std::chrono::year_month_day date(day);
        if (!detail::contains(m_table.months, static_cast<unsigned>(date.month()))) {
            day = std::chrono::local_days(date.year() / date.month() / 1 + std::chrono::months(1));
        } else if (on(day, static_cast<unsigned>(date.day()))) {
            return day;
        } else {
            day += std::chrono::days(1);
        }
    }
    return std::nullopt;
}

ORIZURU_INLINE bool Cron::on(std::chrono::local_days day, unsigned of_month) const {
    const bool month_day = detail::contains(m_table.days, of_month);
    const bool weekday = detail::contains(m_table.weekdays, std::chrono::weekday(day).c_encoding());
    return m_table.either_day ? month_day || weekday : month_day && weekday;
}

/// The first time of a day from this one on.
ORIZURU_INLINE std::optional<std::chrono::seconds>
Cron::time_from(std::chrono::seconds time) const {
    const auto count = static_cast<unsigned>(time.count());
    const unsigned hour = count / 3600;
    const unsigned minute = count / 60 % 60;
    const auto at = [](unsigned hours, unsigned minutes, unsigned seconds) {
        return std::chrono::seconds(hours * 3600 + minutes * 60 + seconds);
    };
    const auto first_minute = static_cast<unsigned>(std::countr_zero(m_table.minutes));
    const auto first_second = static_cast<unsigned>(std::countr_zero(m_table.seconds));
    if (detail::contains(m_table.hours, hour)) {
        if (const auto second = detail::first_from(m_table.seconds, count % 60);
            second && detail::contains(m_table.minutes, minute)) {
            return at(hour, minute, *second);
        }
        if (const auto later = detail::first_from(m_table.minutes, minute + 1)) {
            return at(hour, *later, first_second);
        }
    }
    if (const auto later = detail::first_from(m_table.hours, hour + 1)) {
        return at(*later, first_minute, first_second);
    }
    return std::nullopt;
}

} // namespace orizuru
