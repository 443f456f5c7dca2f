// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A purge of an inbox or a ledger, in steps: see tables/purging.hpp.

#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/pool.hpp>
#include <orizuru/detail/postgres/statement.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// One step, which is committed.
struct Purged {
    struct Held {
        std::string id;
        std::string reason; ///< in PostgreSQL's words
    };
    std::uint64_t count = 0;
    std::vector<Held> held = {}; ///< rows that a foreign key refers to: they stay

    /// False when the purge is over.
    [[nodiscard]] bool goes_on() const noexcept { return count > 0 || !held.empty(); }
};

/// One thread's at a time.
class Purge {
  public:
    /// Purges the inbox's scope or the ledger's queue `name`; `who` is "inbox" or "ledger".
    Purge(const std::string& prefix, const std::string& who, std::string name,
          std::chrono::seconds age)
        // A COMMIT that a crash forgets is made up for by the next purge.
        : m_step(with_prefix("SELECT *, set_config('synchronous_commit', 'off', true) "
                             "FROM $p$purge('" +
                                 who + "', $1, $2, $3, $4)",
                             prefix)),
          m_name(std::move(name)),
          m_age(age) {}

    /// A thousand at most. `transaction` commits each statement.
    [[nodiscard]] Purged step(pqxx::nontransaction& transaction) {
        Purged done;
        for (const auto& row :
             execute(transaction, m_step, m_name, m_age.count(), m_from_us, m_but)) {
            if (row[0].is_null()) {
                done.held.push_back({row[1].as<std::string>(), row[2].as<std::string>()});
            } else {
                done.count = row[0].as<std::uint64_t>();
                m_from_us = row[3].as<std::int64_t>();
                m_but = row[4].as<std::string>();
            }
        }
        return done;
    }

  private:
    std::string m_step;
    std::string m_name;
    std::chrono::seconds m_age;
    std::int64_t m_from_us = 0; ///< where the next step goes on, as the last one said
    std::string m_but = "{}";
};

/// Returns how many are forgotten, and tells `on_held` of all that are not.
[[nodiscard]] inline std::uint64_t
purge_all(Pool& pool, Purge purge,
          const std::function<void(std::string_view, std::string_view)>& on_held) {
    std::uint64_t count = 0;
    while (true) {
        const Purged done = attempt_own(pool, [&](pqxx::connection& connection) {
            pqxx::nontransaction transaction(connection);
            return purge.step(transaction);
        });
        if (!done.goes_on()) {
            return count;
        }
        count += done.count;
        for (const Purged::Held& one : done.held) {
            if (on_held) {
                on_held(one.id, one.reason);
            }
        }
    }
}

} // namespace orizuru::detail
