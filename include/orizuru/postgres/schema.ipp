// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of schema.hpp.

#include <orizuru/detail/postgres/client.hpp>
#include <orizuru/detail/postgres/failure.hpp>
#include <orizuru/detail/postgres/rights.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/detail/postgres/tables/binding.hpp>
#include <orizuru/detail/postgres/tables/inbox.hpp>
#include <orizuru/detail/postgres/tables/ledger.hpp>
#include <orizuru/detail/postgres/tables/ledger_care.hpp>
#include <orizuru/detail/postgres/tables/ledger_history.hpp>
#include <orizuru/detail/postgres/tables/ledger_loss.hpp>
#include <orizuru/detail/postgres/tables/ledger_results.hpp>
#include <orizuru/detail/postgres/tables/ledger_rows.hpp>
#include <orizuru/detail/postgres/tables/ledger_run.hpp>
#include <orizuru/detail/postgres/tables/ledger_sleep.hpp>
#include <orizuru/detail/postgres/tables/ledger_step.hpp>
#include <orizuru/detail/postgres/tables/ledger_time.hpp>
#include <orizuru/detail/postgres/tables/outbox.hpp>
#include <orizuru/detail/postgres/tables/outbox_unordered.hpp>
#include <orizuru/detail/postgres/tables/purging.hpp>

#include <pqxx/pqxx>

#include <array>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <utility>

namespace orizuru {

namespace detail {

/// The statements of each version, from the one before.
inline constexpr std::array<std::string_view, schema_needed> migrations{
    inbox_tables,          outbox_tables,           ledger_tables,       ledger_loss_tables,
    ledger_care_tables,    ledger_time_tables,      ledger_sleep_tables, ledger_results_tables,
    ledger_history_tables, outbox_unordered_tables, ledger_rows_tables,  ledger_run_tables,
    ledger_step_tables,    binding_tables,          purging_tables};

/// The statements below have backslashes in their strings.
inline constexpr const char* as_sql_says = "SET LOCAL standard_conforming_strings = on;\n";

/// Returns what `use` does in a transaction of its own; throws DatabaseError.
ORIZURU_INLINE int connected(const Database& database, const std::function<int(pqxx::work&)>& use) {
    try {
        Client client(database);
        pqxx::work transaction(*client);
        const int result = use(transaction);
        transaction.commit();
        return result;
    } catch (const pqxx::failure& error) {
        throw database_error(database, error);
    }
}

} // namespace detail

ORIZURU_INLINE Schema::Schema(Database database) : m_database(std::move(database)) {}

ORIZURU_INLINE std::string Schema::with_own_prefix(std::string_view sql) const {
    return detail::with_prefix(sql, m_database.prefix());
}

ORIZURU_INLINE std::string Schema::migration(int to) const {
    return with_own_prefix(std::string(detail::migrations.at(static_cast<std::size_t>(to - 1))) +
                           "INSERT INTO $p$schema (version) VALUES (" + std::to_string(to) +
                           ");\n");
}

ORIZURU_INLINE std::string Schema::table_of_versions() const {
    return with_own_prefix("CREATE TABLE IF NOT EXISTS $p$schema (version integer PRIMARY "
                           "KEY, applied_at timestamptz NOT NULL DEFAULT now());\n");
}

ORIZURU_INLINE int Schema::applied() {
    return detail::connected(m_database, [this](pqxx::work& transaction) {
        return detail::schema_version(transaction, m_database);
    });
}

ORIZURU_INLINE int Schema::apply() {
    return detail::connected(m_database, [this](pqxx::work& transaction) {
        // Else what it looks at is what was before the lock, when that is the database's default.
        transaction.exec("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
        transaction.exec(detail::as_sql_says);
        detail::execute(transaction, "SELECT pg_advisory_xact_lock(hashtext($1))",
                        m_database.prefix() + "schema");
        const int found = detail::schema_version(transaction, m_database);
        if (found > version) {
            throw SchemaError(detail::wrong_version(m_database, found));
        }
        transaction.exec(found == 0 ? table_of_versions() : with_own_prefix(detail::go_home));
        for (int to = found + 1; to <= version; ++to) {
            transaction.exec(migration(to));
        }
        if (found < version || detail::moved_from(transaction, m_database.prefix())) {
            transaction.exec(with_own_prefix(detail::bind_tables));
        }
        return found;
    });
}

ORIZURU_INLINE std::string Schema::sql(int from) const {
    if (from < 0 || from > version) {
        throw std::invalid_argument("there is no version " + std::to_string(from) +
                                    " of the tables to migrate from");
    }
    std::string text = std::string("BEGIN;\n") + detail::as_sql_says;
    if (from == 0) {
        text += table_of_versions();
    }
    text += with_own_prefix(detail::go_home);
    for (int to = from + 1; to <= version; ++to) {
        text += migration(to);
    }
    return text + with_own_prefix(detail::bind_tables) + "COMMIT;\n";
}

ORIZURU_INLINE std::string Schema::grants(std::string_view role, TableUse use) const {
    const auto quote = [role](char mark) {
        std::string quoted(1, mark);
        for (const char c : role) {
            quoted += std::string(c == mark ? 2 : 1, c);
        }
        return quoted + mark;
    };
    const std::string quoted = quote('"');
    const std::string literal = quote('\'');
    std::string dollars = "$do$";
    while (role.find(dollars) != std::string_view::npos) {
        dollars.insert(1, "_");
    }
    // In `public` all have the right, and the owner of the tables may not be the one to give it.
    std::string text = with_own_prefix(
        "DO " + dollars +
        " DECLARE home text := (SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON "
        "n.oid = c.relnamespace WHERE c.oid = to_regclass('$p$schema')); "
        "BEGIN IF NOT has_schema_privilege(" +
        literal + ", home, 'USAGE') THEN EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', home, " +
        literal + "); END IF; END " + dollars + ";\n");
    for (const detail::Right& right : detail::table_rights) {
        if (right.use == use) {
            text += "GRANT " + std::string(right.privilege) + " ON TABLE " + m_database.prefix() +
                    std::string(right.table) + " TO " + quoted + ";\n";
        }
    }
    return text;
}

} // namespace orizuru
