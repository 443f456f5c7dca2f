// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue's row in the ledger, which a reconciler locks for the time of a transaction.

#include <orizuru/detail/postgres/ledger/mark.hpp>
#include <orizuru/detail/postgres/statement.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace orizuru::detail {

struct LedgerQueueRow {
    LedgerMark mark;          ///< the one that Redis must have
    bool same_timeline;       ///< PostgreSQL was not replaced since
    std::int64_t transaction; ///< the number of this one
    std::int64_t dead_seen;   ///< entries of the dead list that were looked at
};

class LedgerQueueLock {
  public:
    /// Prepares the statements. When a transaction leaves PostgreSQL without a word for longer than
    /// `longest_idle`, because its process is frozen, PostgreSQL ends the session, and others can
    /// have the queue. Its
    /// COMMIT does not wait for the disk, nor does a claim of a job that it has sent: what a crash
    /// of PostgreSQL forgets of it is done once more, and a completion is durable only behind it.
    LedgerQueueLock(const std::string& prefix, std::chrono::milliseconds longest_idle)
        : m_lock("SET LOCAL synchronous_commit = off; "
                 "SET LOCAL idle_in_transaction_session_timeout = " +
                 std::to_string(longest_idle.count()) +
                 with_prefix("; SELECT epoch, sequence, timeline = $p$ledger_timeline(), "
                             "txid_current(), dead_seen FROM $p$ledger_queue WHERE name = ",
                             prefix)) {}

    /// Waits for nobody: nothing when another reconciler has locked the row.
    [[nodiscard]] std::optional<LedgerQueueRow> take(pqxx::work& transaction,
                                                     const std::string& queue) const {
        const pqxx::result locked =
            transaction.exec(m_lock + transaction.quote(queue) + " FOR UPDATE SKIP LOCKED");
        if (locked.empty()) {
            return std::nullopt;
        }
        const auto& row = locked[0];
        return LedgerQueueRow{{row[0].as<std::int64_t>(), row[1].as<std::int64_t>()},
                              row[2].as<bool>(),
                              row[3].as<std::int64_t>(),
                              row[4].as<std::int64_t>()};
    }

  private:
    std::string m_lock;
};

} // namespace orizuru::detail
