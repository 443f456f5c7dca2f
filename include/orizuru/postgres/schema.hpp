// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The tables of Inbox, Outbox and Ledger, by versioned migrations: the library applies them, or
// prints them for your own migration tool. The table <prefix>schema has the version.
//
// Statements find the tables by search_path. The functions and triggers work in the schema in which
// they were made, whatever the path is when they run: a transaction may push to the outbox of one
// schema, and go on in another.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/postgres/schema_version.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <string>
#include <string_view>

namespace orizuru {

/// Makes the tables in one database, or prints the statements that do. Each call connects anew; any
/// thread. Throws DatabaseError when the server cannot be reached or refuses.
class Schema {
  public:
    /// The version that this library needs, exactly.
    static constexpr int version = detail::schema_needed;

    /// Does not connect.
    explicit Schema(Database database);

    /// Brings the tables to `version`; returns the version before, 0 = there were none. It makes
    /// new ones in the first schema of search_path. The user must be allowed to create tables, and
    /// owns them; running workers wait meanwhile.
    /// After ALTER SCHEMA ... RENAME, or in a copy of the schema, it binds the functions to the
    /// schema that has the tables now. Until then all objects that are made refuse the tables with
    /// SchemaError, and PostgreSQL refuses a COMMIT with messages for an Outbox. Objects that were
    /// made before are not refused: end them before two schemas swap their names.
    /// Atomic: one transaction; of several at once, one does it. Throws SchemaError when the tables
    /// are newer than this library.
    int apply();

    /// 0 = there are none. Throws SchemaError when they are in a schema that the user may not use.
    [[nodiscard]] int applied();

    /// The statements that `apply` would run from a version on, as one transaction for psql; from
    /// this version, those that bind the functions.
    [[nodiscard]] std::string sql(int from = 0) const;

    /// The statements that give a role the least rights that a use takes, USAGE on the schema that
    /// has the tables among them. The owner of the tables needs none.
    [[nodiscard]] std::string grants(std::string_view role, TableUse use) const;

  private:
    [[nodiscard]] std::string with_own_prefix(std::string_view sql) const;
    [[nodiscard]] std::string migration(int to) const;
    [[nodiscard]] std::string table_of_versions() const;

    Database m_database;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/postgres/schema.ipp>
#endif
