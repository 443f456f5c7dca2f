// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of one job of a ledger.

#include <orizuru/jobs/job_time.hpp>

#include <chrono>
#include <optional>

namespace orizuru {

/// All times are the database's.
struct LedgerJobOptions {
    /// Time it waits before it is due, from the INSERT, up to 100 years; 0 or less = it is due at
    /// once. No try begins before.
    std::chrono::milliseconds delay{};
    /// Time at which it is due, in the years 1970 to 9999; then `delay` does not count.
    std::optional<JobTime> at = {};
    /// Time after it is due in which the last try may begin, 1 ms to 100 years: a job that has not
    /// begun by then is dead, and so is one that fails and whose next try would be later. Programs
    /// with an earlier version of this library run it in batches all the same.
    std::optional<std::chrono::milliseconds> expires_after = {};
    /// Number of tries in all, 1 or more; empty: as LedgerOptions::retry says.
    std::optional<int> max_attempts = {};
};

} // namespace orizuru
