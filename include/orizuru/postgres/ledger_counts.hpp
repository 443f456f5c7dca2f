// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Counts a queue's jobs in a ledger, by their state.

#include <orizuru/jobs/job_time.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace orizuru {

/// Numbers of a queue's jobs. Completed jobs are not counted: that would read all of them.
struct LedgerCounts {
    std::string queue;                  ///< its name
    std::uint64_t pending = 0;          ///< they can run now
    std::uint64_t scheduled = 0;        ///< pending, and due later
    std::uint64_t running = 0;          ///< workers have claimed them; their leases may have ended
    std::uint64_t failed = 0;           ///< they are tried again
    std::uint64_t dead = 0;             ///< they are not tried again, unless somebody revives them
    std::optional<JobTime> oldest = {}; ///< since when the first of `pending` has been that
    JobTime now = {};                   ///< the database's
};

} // namespace orizuru
