// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Times in cron's notation: fields for minute, hour, day, month and weekday; when there are six,
// the first is the second.
//
//   30 3 * * MON-FRI     3:30 on working days
//   */10 8-17 * * *      every ten minutes from 8:00 to 17:50
//   0 0 1,15 * FRI       the 1st, the 15th and each Friday, at midnight
//   0 */5 * * * *        every five minutes, with a second
//
// A field is *, a number or a range, each range or * with or without a step, or a list of these.
// Months and weekdays have names too, JAN and SUN, in any case; 0 and 7 are Sunday; ? is *. A day
// of the month and a weekday that both do not begin with * are alternatives, else both must hold.
// There are also @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/jobs/cron_table.hpp>
#include <orizuru/jobs/time_zone.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace orizuru {

/// A cron expression: a value that reads no clock. May be used by any thread.
class Cron {
  public:
    /// Throws std::invalid_argument with the expression, the field and the reason; also for an
    /// expression without occurrences, such as 30 February.
    explicit Cron(std::string expression);

    /// The expression as it was given. Valid as long as this object.
    [[nodiscard]] const std::string& expression() const noexcept { return m_expression; }

    /// The first occurrence after a time. Where a zone changes its clocks, occurrences in the
    /// skipped hour become one, at its end; the repeated hour has its occurrences in the first pass
    /// only: `*/5 * * * *`, too, then rests for an hour, which it never does in UTC.
    /// Throws std::invalid_argument for a time that is not in the years 0 to 9999.
    [[nodiscard]] std::chrono::sys_seconds next(std::chrono::sys_seconds after,
                                                const TimeZone& zone = {}) const;

    /// The occurrences after a time, up to and including another: the last `most` of them, the
    /// earliest first. Throws as `next`.
    [[nodiscard]] std::vector<std::chrono::sys_seconds> latest(std::chrono::sys_seconds after,
                                                               std::chrono::sys_seconds until,
                                                               std::size_t most,
                                                               const TimeZone& zone = {}) const;

  private:
    [[nodiscard]] std::chrono::local_seconds next_local(std::chrono::local_seconds after) const;
    [[nodiscard]] std::optional<std::chrono::local_days>
    day_from(std::chrono::local_days day) const;
    [[nodiscard]] bool on(std::chrono::local_days day, unsigned of_month) const;
    [[nodiscard]] std::optional<std::chrono::seconds> time_from(std::chrono::seconds time) const;

    std::string m_expression;
    detail::CronTable m_table;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/jobs/cron.ipp>
#endif
