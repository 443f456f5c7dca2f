// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Which rights each use of the tables takes, and the look whether the tables are there and the user
// has them, before a message is touched.

#include <orizuru/detail/postgres/failure.hpp>
#include <orizuru/detail/postgres/pool.hpp>
#include <orizuru/detail/postgres/schema_version.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <pqxx/pqxx>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

struct Right {
    TableUse use;
    std::string_view privilege;
    std::string_view table; ///< behind the prefix
};

/// Functions may be executed by everybody, with the caller's own rights.
inline constexpr std::array table_rights{
    Right{TableUse::inbox, "SELECT", "schema"},
    Right{TableUse::inbox, "INSERT", "inbox"},
    // RETURNING needs it.
    Right{TableUse::inbox, "SELECT", "inbox"},
    Right{TableUse::outbox, "INSERT", "outbox"},
    Right{TableUse::outbox, "INSERT", "outbox_order"},
    Right{TableUse::outbox, "INSERT", "outbox_queue"},
    Right{TableUse::relay, "SELECT", "schema"},
    Right{TableUse::relay, "SELECT", "outbox"},
    Right{TableUse::relay, "DELETE", "outbox"},
    Right{TableUse::relay, "SELECT", "outbox_order"},
    Right{TableUse::relay, "DELETE", "outbox_order"},
    Right{TableUse::relay, "SELECT", "outbox_queue"},
    // FOR UPDATE needs it.
    Right{TableUse::relay, "UPDATE", "outbox_queue"},
    Right{TableUse::relay, "UPDATE", "outbox_sleep"},
    Right{TableUse::ledger, "SELECT", "schema"},
    Right{TableUse::ledger, "SELECT", "ledger"},
    Right{TableUse::ledger, "INSERT", "ledger"},
    Right{TableUse::ledger, "UPDATE", "ledger"},
    Right{TableUse::ledger, "SELECT", "ledger_history"},
    Right{TableUse::ledger, "INSERT", "ledger_history"},
    Right{TableUse::ledger, "INSERT", "ledger_queue"},
    Right{TableUse::reconcile, "SELECT", "schema"},
    Right{TableUse::reconcile, "SELECT", "ledger"},
    Right{TableUse::reconcile, "UPDATE", "ledger"},
    Right{TableUse::reconcile, "SELECT", "ledger_history"},
    Right{TableUse::reconcile, "INSERT", "ledger_history"},
    Right{TableUse::reconcile, "SELECT", "ledger_queue"},
    Right{TableUse::reconcile, "UPDATE", "ledger_queue"},
    Right{TableUse::reconcile, "UPDATE", "ledger_sleep"},
    Right{TableUse::purge, "SELECT", "schema"},
    Right{TableUse::purge, "SELECT", "inbox"},
    Right{TableUse::purge, "DELETE", "inbox"},
    Right{TableUse::purge, "SELECT", "ledger"},
    Right{TableUse::purge, "DELETE", "ledger"},
    Right{TableUse::purge, "SELECT", "ledger_history"},
    Right{TableUse::purge, "DELETE", "ledger_history"},
};

[[nodiscard]] inline bool has_tables(pqxx::transaction_base& transaction,
                                     const std::string& prefix) {
    return !execute(transaction, "SELECT to_regclass($1)", prefix + "schema")[0][0].is_null();
}

/// PostgreSQL leaves out schemas of search_path that the user has no USAGE of, as if they were not
/// there. Throws SchemaError when the tables are in one of these.
inline void check_no_hidden_tables(pqxx::transaction_base& transaction, const Database& database) {
    const pqxx::result hidden = transaction.exec(with_prefix(R"sql(
SELECT current_user, quote_ident(n.nspname)
FROM unnest(string_to_array(current_setting('search_path'), ','))
    WITH ORDINALITY AS path (entry, place)
JOIN pg_namespace AS n ON n.nspname = CASE WHEN btrim(entry) IN ('"$user"', '$user')
    THEN current_user ELSE replace(btrim(entry, ' "'), '""', '"') END
JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = '$p$schema'
WHERE NOT has_schema_privilege(n.oid, 'USAGE') ORDER BY place LIMIT 1
)sql",
                                                             database.prefix()));
    if (!hidden.empty()) {
        throw SchemaError(database.address() + ": the user '" + hidden[0][0].as<std::string>() +
                          "' has no right to USAGE on schema " + hidden[0][1].as<std::string>() +
                          ", where the tables '" + database.prefix() +
                          "...' are: see Schema::grants");
    }
}

/// 0 = there are no tables. Throws SchemaError when there are some that the user cannot see.
[[nodiscard]] inline int schema_version(pqxx::transaction_base& transaction,
                                        const Database& database) {
    if (!has_tables(transaction, database.prefix())) {
        check_no_hidden_tables(transaction, database);
        return 0;
    }
    return transaction
        .exec("SELECT coalesce(max(version), 0) FROM " + database.prefix() + "schema")[0][0]
        .as<int>();
}

[[nodiscard]] inline std::string wrong_version(const Database& database, int found) {
    const std::string tables = database.address() + ": the tables '" + database.prefix() + "...' ";
    return tables + (found == 0 ? "do not exist" : "have version " + std::to_string(found)) +
           ", this library needs version " + std::to_string(schema_needed) +
           (found < schema_needed ? ": see Schema::apply and Schema::sql" : "");
}

/// The first of the rights that the user has not, in words; none: it has them all. One statement.
template <class Chosen>
[[nodiscard]] std::optional<std::string> missing_right(pqxx::transaction_base& transaction,
                                                       const std::string& prefix, Chosen chosen) {
    std::string looks;
    for (const Right& right : table_rights) {
        if (chosen(right)) {
            const std::string privilege(right.privilege);
            const std::string table = prefix + std::string(right.table);
            looks.append(" WHEN NOT has_table_privilege('").append(table).append("', '");
            looks.append(privilege).append("') THEN '").append(privilege).append(" on ");
            looks.append(table).append("'");
        }
    }
    const auto found = transaction.exec("SELECT CASE" + looks + " END, current_user")[0];
    if (found[0].is_null()) {
        return std::nullopt;
    }
    return "the user '" + found[1].as<std::string>() + "' has no right to " +
           found[0].as<std::string>();
}

/// The schema that the functions work in; none: it is the one that has the tables.
[[nodiscard]] inline std::optional<std::string> moved_from(pqxx::transaction_base& transaction,
                                                           const std::string& prefix) {
    const auto row = transaction.exec(
        with_prefix("SELECT $p$home() FROM pg_class AS c JOIN pg_namespace AS n "
                    "ON n.oid = c.relnamespace WHERE c.oid = to_regclass('$p$schema') "
                    "AND n.nspname <> $p$home()",
                    prefix));
    return row.empty() ? std::nullopt : std::optional(row[0][0].as<std::string>());
}

/// Throws SchemaError, which names what is missing.
inline void check_tables(pqxx::transaction_base& transaction, const Database& database,
                         TableUse use) {
    const auto need = [&](auto chosen) {
        if (const auto missing = missing_right(transaction, database.prefix(), chosen)) {
            throw SchemaError(database.address() + ": " + *missing + ": see Schema::grants");
        }
    };
    if (has_tables(transaction, database.prefix())) {
        need([&](const Right& right) { return right.use == use && right.table == "schema"; });
    }
    const int found = schema_version(transaction, database);
    if (found != schema_needed) {
        throw SchemaError(wrong_version(database, found));
    }
    if (const auto before = moved_from(transaction, database.prefix())) {
        throw SchemaError(database.address() + ": the functions of the tables '" +
                          database.prefix() + "...' work in the schema '" + *before +
                          "', from which these were moved or copied: see Schema::apply");
    }
    need([&](const Right& right) { return right.use == use; });
}

/// Does the same for one who starts, which does not wait for the server: throws DatabaseError.
inline void check_tables(Pool& pool, TableUse use) {
    try {
        auto client = pool.take();
        {
            pqxx::read_transaction transaction(**client);
            check_tables(transaction, pool.database(), use);
        }
        pool.give_back(std::move(client));
    } catch (const pqxx::failure& error) {
        throw database_error(pool.database(), error);
    }
}

} // namespace orizuru::detail
