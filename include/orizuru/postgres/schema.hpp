// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The tables of Inbox, Outbox and Ledger, by versioned migrations: the library applies them, or
// prints them for your own migration tool. The table <prefix>schema has the version.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/postgres/schema_version.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <string>
#include <string_view>

namespace orizuru {

/// The tables in one database. Each call connects anew; any thread.
/// Throws DatabaseError when the server cannot be reached or refuses.
class Schema {
  public:
    /// The version that this library needs, exactly.
    static constexpr int version = detail::schema_needed;

    explicit Schema(Database database);

    /// Brings the tables to `version`; returns the version before, 0 = there were none. The user
    /// must be allowed to create tables, and owns them; running workers wait meanwhile.
    /// Atomic: one transaction; of several at once, one does it. Throws SchemaError when the tables
    /// are newer than this library.
    int apply();

    /// 0 = there are none.
    [[nodiscard]] int applied();

    /// The statements that `apply` would run from a version on, as one transaction for psql.
    [[nodiscard]] std::string sql(int from = 0) const;

    /// The statements that give a role the least rights that a use takes. The owner of the tables
    /// needs none.
    [[nodiscard]] std::string grants(std::string_view role, TableUse use) const;

  private:
    [[nodiscard]] std::string migration(int to) const;
    [[nodiscard]] std::string table_of_versions() const;

    Database m_database;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/postgres/schema.ipp>
#endif
