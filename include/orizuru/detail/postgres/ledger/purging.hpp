// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a reconciler forgets with each sweep: finished jobs, a thousand of one queue at a time, so
// that other work goes on in between.

#include <orizuru/detail/postgres/ledger/queues.hpp>
#include <orizuru/detail/postgres/ledger/session.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// One thread's at a time. The session outlives it.
class LedgerPurging {
  public:
    /// Without an age there is never anything to do; with one, throws SchemaError without the
    /// rights.
    LedgerPurging(LedgerSession& session, std::optional<std::chrono::seconds> age)
        : m_session(session),
          m_age(age),
          // A COMMIT that a crash forgets is repeated.
          m_purge(with_prefix("SELECT $p$ledger_purge($1, $2), "
                              "set_config('synchronous_commit', 'off', true)",
                              session.database().prefix())) {
        if (m_age) {
            m_session.check(TableUse::purge);
        }
    }

    /// All these queues are to be looked at.
    void begin(const std::vector<LedgerQueue>& queues) {
        m_queues.clear();
        if (m_age) {
            std::ranges::transform(queues, std::back_inserter(m_queues), &LedgerQueue::name);
        }
    }
    /// False when there is nothing to do until the next begin().
    [[nodiscard]] bool goes_on() const noexcept { return !m_queues.empty(); }
    /// Returns how many jobs are forgotten. A queue that fails is left for the next begin().
    std::uint64_t step() {
        std::string queue = std::move(m_queues.back());
        m_queues.pop_back();
        const auto purged = m_session.in([&](pqxx::connection& connection) {
            pqxx::nontransaction transaction(connection);
            return execute(transaction, m_purge, queue, m_age->count())[0][0]
                .template as<std::uint64_t>();
        });
        if (purged > 0) {
            m_queues.push_back(std::move(queue));
        }
        return purged;
    }

  private:
    LedgerSession& m_session;
    std::optional<std::chrono::seconds> m_age;
    std::string m_purge;
    std::vector<std::string> m_queues;
};

} // namespace orizuru::detail
