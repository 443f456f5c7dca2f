// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The queues as a reconciler's look at the ledger sees them.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/postgres/ledger/mark.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace orizuru::detail {

struct LedgerQueue {
    std::string name;
    LedgerMark mark; ///< the one that Redis must have
    TimePoint due;   ///< next time that something is to be done
};

/// From what $p$ledger_look returns.
[[nodiscard]] inline std::vector<LedgerQueue> ledger_queues(const pqxx::result& seen) {
    std::vector<LedgerQueue> queues;
    for (const auto& row : seen) {
        TimePoint due = TimePoint::max();
        if (row[3].as<bool>()) { // something is not sent
            due = {};
        } else if (!row[4].is_null()) {
            due = deadline_in(std::chrono::milliseconds(
                static_cast<std::int64_t>(std::ceil(row[4].as<double>()))));
        }
        queues.push_back({row[0].as<std::string>(),
                          {row[1].as<std::int64_t>(), row[2].as<std::int64_t>()},
                          due});
    }
    return queues;
}

} // namespace orizuru::detail
