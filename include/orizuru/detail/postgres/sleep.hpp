// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How a process that waits for commits says that it sleeps, or is awake: see sleep_tables.hpp.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/postgres/statement.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

namespace orizuru::detail {

/// Each call is one statement, and one that has to be committed at once. A value; any thread.
class Sleep {
  public:
    /// `who` is "ledger" or "outbox".
    Sleep(const std::string& prefix, const std::string& who)
        : m_wake(with_prefix("SELECT $p$wake('" + who + "')", prefix)),
          m_doze(with_prefix("SELECT $p$doze('" + who + "', ", prefix)),
          m_lapsed(with_prefix("SELECT last_value < extract(epoch FROM clock_timestamp()) * 1000 "
                               "FROM $p$" +
                                   who + "_sleep",
                               prefix)) {}

    /// From now on no commit wakes anybody: before it sleeps again, the caller looks.
    void wake(pqxx::connection& connection) const { pqxx::nontransaction(connection).exec(m_wake); }

    /// From now on a commit wakes the caller, who looks once more after this call, when something
    /// is due before `until`. False when the look may not see all that was committed without it.
    [[nodiscard]] bool doze(pqxx::connection& connection, TimePoint until) const {
        const auto time =
            std::chrono::ceil<std::chrono::milliseconds>(std::min(until - Clock::now(), longest));
        return pqxx::nontransaction(connection)
            .exec(m_doze + std::to_string(std::max<std::int64_t>(time.count(), 1)) + ")")[0][0]
            .as<bool>();
    }

    /// Whether nobody sleeps, as far as is known. When the caller does, the one that has woken
    /// since may have died, and then no commit wakes anybody.
    [[nodiscard]] bool lapsed(pqxx::connection& connection) const {
        return pqxx::nontransaction(connection).exec(m_lapsed)[0][0].as<bool>();
    }

  private:
    // More than any sweep.
    static constexpr Clock::duration longest = std::chrono::hours(48);

    std::string m_wake;
    std::string m_doze;
    std::string m_lapsed;
};

} // namespace orizuru::detail
