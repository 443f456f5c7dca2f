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
    LedgerMark mark; ///< what Redis has to have
    TimePoint due;   ///< when there is something to be done
};

struct LedgerLook {
    std::vector<LedgerQueue> queues;
    bool alone = true; ///< nobody was about to commit something that it has not seen
};

/// From what $p$ledger_look returns.
[[nodiscard]] inline LedgerLook ledger_look(const pqxx::result& seen) {
    LedgerLook look;
    for (const auto& row : seen) {
        TimePoint due = TimePoint::max();
        if (row[3].as<bool>()) { // something is not sent
            due = {};
        } else if (!row[4].is_null()) {
            due = deadline_in(std::chrono::milliseconds(
                static_cast<std::int64_t>(std::ceil(row[4].as<double>()))));
        }
        look.alone = row[5].as<bool>();
        look.queues.push_back({row[0].as<std::string>(),
                               {row[1].as<std::int64_t>(), row[2].as<std::int64_t>()},
                               due});
    }
    return look;
}

} // namespace orizuru::detail
