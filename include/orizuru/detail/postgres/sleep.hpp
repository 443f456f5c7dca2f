// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Says for a process that waits for commits that it sleeps, or is awake: see
// tables/ledger_sleep.hpp.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/postgres/statement.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

namespace orizuru::detail {

/// One thread's at a time. Each call is one statement at most, which is committed at once.
class Sleep {
  public:
    /// `who` is "ledger" or "outbox".
    Sleep(const std::string& prefix, const std::string& who)
        : m_wake(with_prefix("SELECT $p$wake('" + who + "')", prefix)),
          m_doze(with_prefix("SELECT * FROM $p$doze('" + who + "', ", prefix)),
          m_look(with_prefix(
              "SELECT last_value, last_value < extract(epoch FROM clock_timestamp()) * 1000 AND "
              "abs(last_value - extract(epoch FROM clock_timestamp())) > 2, "
              "current_setting('transaction_read_only') FROM $p$" +
                  who + "_sleep",
              prefix)),
          m_write(with_prefix("SELECT setval('$p$" + who + "_sleep', ", prefix)),
          m_unless(with_prefix(") FROM $p$" + who + "_sleep WHERE last_value = ", prefix)) {}

    /// For one second no commit wakes anybody: before it sleeps again, the caller looks.
    void wake(pqxx::connection& connection) {
        if (Clock::now() >= m_awake_until) {
            pqxx::nontransaction(connection).exec(m_wake);
            m_awake_until = deadline_in(std::chrono::seconds(1));
        }
    }

    /// From now on a commit wakes the caller, who looks once more after this call, when something
    /// is due before `until`. False when the look may not see all that was committed without it.
    [[nodiscard]] bool doze(pqxx::connection& connection, TimePoint until) {
        forget();
        const auto time =
            std::chrono::ceil<std::chrono::milliseconds>(std::min(until - Clock::now(), longest));
        const pqxx::result asleep =
            pqxx::nontransaction(connection)
                .exec(m_doze + std::to_string(std::max<std::int64_t>(time.count(), 1)) + ")");
        m_written = asleep[0][0].as<std::int64_t>();
        return asleep[0][1].as<bool>();
    }
    /// After a doze that was true: the caller has looked, and sleeps.
    void fall_asleep(pqxx::connection& connection) const {
        pqxx::nontransaction(connection)
            .exec(m_write + std::to_string(m_written + 1) + m_unless + std::to_string(m_written));
    }

    /// The caller ends: others that sleep look soon.
    void leave(pqxx::connection& connection) const {
        pqxx::nontransaction(connection).exec(m_write + "1)");
    }
    /// The caller has lost its session, and what it has said.
    void forget() noexcept { m_awake_until = {}; }

    /// True if the one that wrote last has died awake, asleep, or before it fell asleep; of the
    /// last the second call tells. To be asked once a second by those that sleep.
    /// Throws pqxx::broken_connection when the server can only be read: another one has the commits
    /// that would wake the caller.
    [[nodiscard]] bool lapsed(pqxx::connection& connection) {
        const pqxx::result seen = pqxx::nontransaction(connection).exec(m_look);
        if (seen[0][2].as<std::string>() != "off") {
            throw pqxx::broken_connection("the server can only be read now");
        }
        const auto value = seen[0][0].as<std::int64_t>();
        const bool dozes = value > no_seconds && value % 2 == 1;
        const bool lapsed = seen[0][1].as<bool>() || (dozes && value == m_dozing);
        m_dozing = dozes ? value : 0;
        return lapsed;
    }

  private:
    // More than any time in seconds, and less than any in milliseconds; as in
    // tables/ledger_sleep.hpp.
    static constexpr std::int64_t no_seconds = 100'000'000'000;
    // More than any sweep.
    static constexpr Clock::duration longest = std::chrono::hours(48);

    std::string m_wake;
    std::string m_doze;
    std::string m_look;
    std::string m_write;
    std::string m_unless;
    TimePoint m_awake_until{};
    std::int64_t m_written = 0; ///< by the last doze
    std::int64_t m_dozing = 0;  ///< the value at the last look if it was a doze's, else 0
};

} // namespace orizuru::detail
