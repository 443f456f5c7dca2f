// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The values that a cron expression allows, as numbers.

#include <cstdint>

namespace orizuru::detail {

/// Numbers from 0 to 63: bit n stands for n.
using CronSet = std::uint64_t;

/// The values that each field of an expression allows.
struct CronTable {
    CronSet seconds;
    CronSet minutes;
    CronSet hours;
    CronSet days;
    CronSet months;
    CronSet weekdays; ///< Sunday is 0
    bool either_day;  ///< a day of the month or of the week is enough
};

} // namespace orizuru::detail
