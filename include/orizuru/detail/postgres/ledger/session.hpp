// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A reconciler's connection to PostgreSQL, made anew when it was lost.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/client.hpp>
#include <orizuru/detail/postgres/failure.hpp>
#include <orizuru/detail/postgres/ledger/queues.hpp>
#include <orizuru/detail/postgres/rights.hpp>
#include <orizuru/detail/postgres/sleep.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <pqxx/pqxx>

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// One thread's at a time.
class LedgerSession {
  public:
    /// Connects; throws DatabaseError and SchemaError.
    explicit LedgerSession(Database database);

    [[nodiscard]] const Database& database() const noexcept { return m_database; }

    /// Returns what `use(connection)` does; throws DatabaseError for its pqxx::failure.
    template <class Use>
    auto in(Use use);
    /// Throws SchemaError without the tables or the rights.
    void check_use(TableUse use);

    [[nodiscard]] std::vector<LedgerQueue> look();
    /// See Sleep.
    void wake();
    [[nodiscard]] bool doze(TimePoint until);
    void fall_asleep();
    [[nodiscard]] bool lapsed();
    /// Does nothing without a session.
    void leave() noexcept;

  private:
    Database m_database;
    std::string m_look;
    Sleep m_sleep;
    std::unique_ptr<Client> m_client;
};

template <class Use>
auto LedgerSession::in(Use use) {
    try {
        if (!m_client) {
            m_client = std::make_unique<Client>(m_database);
            read_committed(**m_client);
        }
        return use(**m_client);
    } catch (const pqxx::failure& error) {
        const std::string reason = reason_of(m_client, error);
        m_client.reset();
        m_sleep.forget();
        throw database_error(m_database, reason);
    }
}

inline LedgerSession::LedgerSession(Database database)
    : m_database(std::move(database)),
      m_look(with_prefix("SELECT * FROM $p$ledger_look()", m_database.prefix())),
      m_sleep(m_database.prefix(), "ledger") {
    check_use(TableUse::reconcile);
}

inline void LedgerSession::check_use(TableUse use) {
    in([&](pqxx::connection& connection) {
        pqxx::work transaction(connection);
        check_tables(transaction, m_database, use);
        return true;
    });
}

inline std::vector<LedgerQueue> LedgerSession::look() {
    return in([this](pqxx::connection& connection) {
        return ledger_queues(pqxx::nontransaction(connection).exec(m_look));
    });
}

inline void LedgerSession::wake() {
    in([this](pqxx::connection& connection) { m_sleep.wake(connection); });
}

inline bool LedgerSession::doze(TimePoint until) {
    return in([&](pqxx::connection& connection) { return m_sleep.doze(connection, until); });
}

inline void LedgerSession::fall_asleep() {
    in([this](pqxx::connection& connection) { m_sleep.fall_asleep(connection); });
}

inline void LedgerSession::leave() noexcept {
    try {
        if (m_client) {
            m_sleep.leave(**m_client);
        }
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
    }
}

inline bool LedgerSession::lapsed() {
    return in([this](pqxx::connection& connection) { return m_sleep.lapsed(connection); });
}

} // namespace orizuru::detail
