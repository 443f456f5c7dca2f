// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where the tables are: a connection string of libpq, as keywords or as a URI,
//
//   host=/run/postgresql dbname=bank user=teller
//   postgresql://teller@db1/bank?sslmode=verify-full
//
// and what the tables' names begin with. What the string does not say is taken from libpq's
// environment (PGHOST, PGPASSFILE...), as by every program that uses libpq.
//
// After a failover each session to a server that can only be read is replaced, at the latest when
// it is to write something; since PostgreSQL 14 when it has read something, too. For that either
// the string has all hosts, `host=db1,db2`, or the name leads to the new primary.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/postgres/common.hpp>
#include <orizuru/detail/postgres/conninfo.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace orizuru {

/// Options of a Database.
struct DatabaseOptions {
    /// Begins the names of tables, functions and the channel: 1 to 30 of a-z 0-9 _, no digit first.
    std::string prefix = "orizuru_";
    /// Time for which an operation tries again while the server cannot be reached, or can only be
    /// read, counted from when it went away; 0 to 24 h.
    std::chrono::milliseconds patience = std::chrono::seconds(30);
};

namespace detail {
class IdleClients;
class Pool;
} // namespace detail

/// A database and the credentials for it: a cheap value, no connection. Not changed once made, so
/// it may be read by any number of threads.
///
/// The Ledgers that are made from copies of one Database share their connections, and so do its
/// Inboxes: there are as many of each as threads are in them at once. They are closed with the last
/// of these objects.
class Database {
  public:
    /// Throws std::invalid_argument, which never repeats the string, when libpq cannot read it, or
    /// reads what may be part of a password as something else: a port that is no number, a host or,
    /// in a URI, a database with '@' in it, a database with '='. In the password of a URI '/' and
    /// '@' must be percent-encoded.
    Database(const char* conninfo) : Database(std::string_view(conninfo)) {}
    /// Does the same for a std::string.
    Database(const std::string& conninfo) : Database(std::string_view(conninfo)) {}
    /// Does the same with options; throws std::invalid_argument also for one out of its range.
    Database(std::string_view conninfo, DatabaseOptions options = {});

    /// The beginning of the names of its tables. Valid as long as this object.
    [[nodiscard]] const std::string& prefix() const noexcept { return m_options.prefix; }
    /// Time for which an operation tries again while the server is away.
    [[nodiscard]] std::chrono::milliseconds patience() const noexcept { return m_options.patience; }

    /// The server in messages: host, port, database and user as far as they were given; no
    /// password, and no name in which one may be, as it has '=' or '@'.
    [[nodiscard]] const std::string& address() const noexcept { return m_conninfo.address(); }
    /// The string that libpq gets: with the password, and, unless the string or libpq's environment
    /// says otherwise, with 5 s to connect, an end to connections of which nothing is heard for 30
    /// s, and target_session_attrs=read-write: of several hosts or addresses it takes the one that
    /// can be written to, and refuses a server that can only be read. With a service (`service`,
    /// PGSERVICE) the last is left to the service's file, the others are not. Always in UTF-8.
    [[nodiscard]] const std::string& conninfo() const noexcept { return m_conninfo.text(); }

  private:
    friend class detail::Pool;

    static DatabaseOptions checked(DatabaseOptions options);

    detail::Conninfo m_conninfo;
    DatabaseOptions m_options;
    std::shared_ptr<detail::Common<detail::IdleClients>> m_idle;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/postgres/database.ipp>
#endif
