// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The tables of Inbox, Outbox and Ledger, by versioned migrations: the library applies them, or
// prints them for those who apply migrations by their own tools. Which version a database has is in
// the table <prefix>schema.

#include <orizuru/detail/postgres/client.hpp>
#include <orizuru/detail/postgres/failure.hpp>
#include <orizuru/detail/postgres/inbox_tables.hpp>
#include <orizuru/detail/postgres/ledger/loss_tables.hpp>
#include <orizuru/detail/postgres/ledger/tables.hpp>
#include <orizuru/detail/postgres/outbox_tables.hpp>
#include <orizuru/detail/postgres/rights.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <pqxx/pqxx>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

/// The tables in one database. Each call connects anew; any thread.
/// Throws DatabaseError when the server cannot be reached or refuses.
class Schema {
  public:
    /// What this library needs: neither less nor more will do.
    static constexpr int version = detail::schema_needed;

    explicit Schema(Database database) : m_database(std::move(database)) {}

    /// Brings the tables to `version`; returns the version before, 0 = there were none. The user
    /// must be allowed to create tables, and owns them; running workers wait meanwhile.
    /// Atomic: one transaction; of several at once, one does it. Throws SchemaError when the tables
    /// are newer than this library.
    int apply();

    /// 0 = there are none.
    [[nodiscard]] int applied();

    /// What `apply` would run, from a version on, as one transaction for psql.
    [[nodiscard]] std::string sql(int from = 0) const;

    /// The statements that give a role the least rights that a use takes. Whoever owns the tables
    /// needs none.
    [[nodiscard]] std::string grants(std::string_view role, TableUse use) const;

  private:
    static constexpr std::array<std::string_view, version> migrations{
        detail::inbox_tables, detail::outbox_tables, detail::ledger_tables,
        detail::ledger_loss_tables};

    [[nodiscard]] std::string migration(int to) const {
        return detail::with_prefix(std::string(migrations.at(static_cast<std::size_t>(to - 1))) +
                                       "INSERT INTO $p$schema (version) VALUES (" +
                                       std::to_string(to) + ");\n",
                                   m_database.prefix());
    }
    [[nodiscard]] std::string table_of_versions() const {
        return detail::with_prefix("CREATE TABLE IF NOT EXISTS $p$schema (version integer PRIMARY "
                                   "KEY, applied_at timestamptz NOT NULL DEFAULT now());\n",
                                   m_database.prefix());
    }
    template <class Use>
    auto connected(Use use);

    Database m_database;
};

template <class Use>
auto Schema::connected(Use use) {
    try {
        detail::Client client(m_database);
        pqxx::work transaction(*client);
        auto result = use(transaction);
        transaction.commit();
        return result;
    } catch (const pqxx::failure& error) {
        throw detail::database_error(m_database, error);
    }
}

inline int Schema::applied() {
    return connected([this](pqxx::work& transaction) {
        return detail::schema_version(transaction, m_database.prefix());
    });
}

inline int Schema::apply() {
    return connected([this](pqxx::work& transaction) {
        // Else what it looks at is what was before the lock, when that is the database's default.
        transaction.exec("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
        detail::execute(transaction, "SELECT pg_advisory_xact_lock(hashtext($1))",
                        m_database.prefix() + "schema");
        const int found = detail::schema_version(transaction, m_database.prefix());
        if (found > version) {
            throw SchemaError(detail::wrong_version(m_database, found));
        }
        if (found == 0) {
            transaction.exec(table_of_versions());
        }
        for (int to = found + 1; to <= version; ++to) {
            transaction.exec(migration(to));
        }
        return found;
    });
}

inline std::string Schema::sql(int from) const {
    if (from < 0 || from > version) {
        throw std::invalid_argument("there is no version " + std::to_string(from) +
                                    " of the tables to migrate from");
    }
    std::string text = "BEGIN;\n";
    if (from == 0) {
        text += table_of_versions();
    }
    for (int to = from + 1; to <= version; ++to) {
        text += migration(to);
    }
    return text + "COMMIT;\n";
}

inline std::string Schema::grants(std::string_view role, TableUse use) const {
    std::string quoted = "\"";
    for (const char c : role) {
        quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    }
    quoted += '"';
    std::string text;
    for (const detail::Right& right : detail::table_rights) {
        if (right.use == use) {
            text += "GRANT " + std::string(right.privilege) + " ON TABLE " + m_database.prefix() +
                    std::string(right.table) + " TO " + quoted + ";\n";
        }
    }
    return text;
}

} // namespace orizuru
