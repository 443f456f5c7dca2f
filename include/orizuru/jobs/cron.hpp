// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// When something recurs, as cron says it: fields for minute, hour, day, month and weekday; with six
// of them the first is the second.
//
//   30 3 * * MON-FRI     3:30 on working days
//   */10 8-17 * * *      every ten minutes from 8:00 to 17:50
//   0 0 1,15 * FRI       the 1st, the 15th and each Friday, at midnight
//   0 */5 * * * *        every five minutes, with a second
//
// A field is *, a number or a range, each range or * with or without a step, or a list of these.
// Months and weekdays have names too, JAN and SUN, in any case; 0 and 7 are Sunday; ? is *. A day
// of the month and a weekday that both do not begin with * are alternatives, else both must hold.
// @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually stand for what they say.

#include <orizuru/detail/jobs/cron_parser.hpp>
#include <orizuru/jobs/time_zone.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

/// A cron expression: a value that asks no clock. May be used by any thread.
class Cron {
  public:
    /// Throws std::invalid_argument with the expression, the field and the reason; also when it
    /// never comes, as on 30 February.
    explicit Cron(std::string expression)
        : m_expression(std::move(expression)), m_table(detail::CronParser(m_expression).parse()) {
        if (!day_from(std::chrono::local_days())) {
            detail::CronParser(m_expression).refuse("none of its months has such a day");
        }
    }

    [[nodiscard]] const std::string& expression() const noexcept { return m_expression; }

    /// The first occurrence after a time. In a zone that changes its clocks, what falls into the
    /// skipped hour comes once, at its end; what falls into the repeated hour comes in the first of
    /// the two alone: also `*/5 * * * *` then rests for an hour, which in UTC it does not.
    /// Throws std::invalid_argument for a time that is not in the years 0 to 9999.
    [[nodiscard]] std::chrono::sys_seconds next(std::chrono::sys_seconds after,
                                                const TimeZone& zone = {}) const;

    /// The occurrences after a time, up to and with another: the last `most` of them, the earliest
    /// first. Throws as `next`.
    [[nodiscard]] std::vector<std::chrono::sys_seconds> latest(std::chrono::sys_seconds after,
                                                               std::chrono::sys_seconds until,
                                                               std::size_t most,
                                                               const TimeZone& zone = {}) const;

  private:
    static std::optional<unsigned> from(detail::CronSet set, unsigned number) {
        const detail::CronSet rest = set >> number;
        return rest == 0 ? std::nullopt
                         : std::optional(number + static_cast<unsigned>(std::countr_zero(rest)));
    }
    static bool has(detail::CronSet set, unsigned number) { return (set >> number & 1) != 0; }

    [[nodiscard]] std::chrono::local_seconds next_local(std::chrono::local_seconds after) const;
    [[nodiscard]] std::optional<std::chrono::local_days>
    day_from(std::chrono::local_days day) const;
    [[nodiscard]] bool on(std::chrono::local_days day, unsigned of_month) const;
    [[nodiscard]] std::optional<std::chrono::seconds> time_from(std::chrono::seconds time) const;

    std::string m_expression;
    detail::CronTable m_table;
};

inline std::chrono::sys_seconds Cron::next(std::chrono::sys_seconds after,
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
inline std::vector<std::chrono::sys_seconds> Cron::latest(std::chrono::sys_seconds after,
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

inline std::chrono::local_seconds Cron::next_local(std::chrono::local_seconds after) const {
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
inline std::optional<std::chrono::local_days> Cron::day_from(std::chrono::local_days day) const {
    const auto end = day + std::chrono::days(146'097);
    while (day < end) {
        const std::chrono::year_month_day date(day);
        if (!has(m_table.months, static_cast<unsigned>(date.month()))) {
            day = std::chrono::local_days(date.year() / date.month() / 1 + std::chrono::months(1));
        } else if (on(day, static_cast<unsigned>(date.day()))) {
            return day;
        } else {
            day += std::chrono::days(1);
        }
    }
    return std::nullopt;
}

inline bool Cron::on(std::chrono::local_days day, unsigned of_month) const {
    const bool month_day = has(m_table.days, of_month);
    const bool weekday = has(m_table.weekdays, std::chrono::weekday(day).c_encoding());
    return m_table.either_day ? month_day || weekday : month_day && weekday;
}

/// The first time of a day from this one on.
inline std::optional<std::chrono::seconds> Cron::time_from(std::chrono::seconds time) const {
    const auto count = static_cast<unsigned>(time.count());
    const unsigned hour = count / 3600;
    const unsigned minute = count / 60 % 60;
    const auto at = [](unsigned hours, unsigned minutes, unsigned seconds) {
        return std::chrono::seconds(hours * 3600 + minutes * 60 + seconds);
    };
    const auto first_minute = static_cast<unsigned>(std::countr_zero(m_table.minutes));
    const auto first_second = static_cast<unsigned>(std::countr_zero(m_table.seconds));
    if (has(m_table.hours, hour)) {
        if (const auto second = from(m_table.seconds, count % 60);
            second && has(m_table.minutes, minute)) {
            return at(hour, minute, *second);
        }
        if (const auto later = from(m_table.minutes, minute + 1)) {
            return at(hour, *later, first_second);
        }
    }
    if (const auto later = from(m_table.hours, hour + 1)) {
        return at(*later, first_minute, first_second);
    }
    return std::nullopt;
}

} // namespace orizuru
