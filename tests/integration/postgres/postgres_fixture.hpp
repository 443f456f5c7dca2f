// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the tests with PostgreSQL: one server and one database per process, emptied before each
// case, with the tables, read by plain pqxx.

#pragma once

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/postgres_server.hpp"

#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/schema.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace orizuru::test {

inline PostgresServer& postgres() {
    static PostgresServer instance;
    return instance;
}

/// Returns its connection string.
inline std::string make_database(const std::string& name) {
    pqxx::connection connection(postgres().conninfo());
    pqxx::nontransaction(connection).exec("CREATE DATABASE " + name);
    return postgres().conninfo() + " dbname=" + name;
}

/// An empty database for one case, and its connection string.
inline std::string new_database() {
    static int count = 0;
    return make_database("test_" + std::to_string(++count));
}

/// The connection string of the one database for all cases of the process, with nothing left of
/// earlier ones. To make a database takes many times as long.
inline std::string emptied_database() {
    static const std::string conninfo = make_database("test");
    {
        pqxx::connection connection(postgres().conninfo());
        pqxx::nontransaction(connection)
            .exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'test';"
                  "ALTER DATABASE test RESET ALL");
    }
    pqxx::connection connection(conninfo);
    pqxx::nontransaction(connection)
        .exec("SET client_min_messages = warning;"
              "DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
              "GRANT USAGE ON SCHEMA public TO PUBLIC");
    return conninfo;
}

/// The statements that make the tables as they were in an older version.
inline std::string sql_of_version(const Database& database, int version) {
    const std::string all = Schema(database).sql();
    const std::string none = Schema(database).sql(Schema::version);
    const std::string later = Schema(database).sql(version);
    std::size_t begin = 0; // of what the two have not in common
    while (none[begin] == later[begin]) {
        ++begin;
    }
    const auto rest = later.substr(later.rfind('\n', begin) + 1);
    REQUIRE(all.ends_with(rest));
    return all.substr(0, all.size() - rest.size()) + "COMMIT;";
}

/// Those of Schema::grants that give a right to a table, one each.
inline std::vector<std::string> table_grants(const std::string& statements) {
    std::vector<std::string> grants;
    std::istringstream lines(statements);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("GRANT ")) {
            grants.push_back(line);
        }
    }
    return grants;
}

/// Assertions do not work in a forked child.
template <class Use>
bool is_logic_error(Use use) {
    try {
        use();
        return false;
    } catch (const std::logic_error&) {
        return true;
    }
}

/// What is notified in a channel.
class Listener : pqxx::notification_receiver {
  public:
    Listener(pqxx::connection& connection, const std::string& channel)
        : pqxx::notification_receiver(connection, channel), m_connection(connection) {}

    /// How many NOTIFYs were committed since the last call.
    int since() {
        const std::string last = "call " + std::to_string(++m_calls);
        pqxx::nontransaction(m_connection).exec("NOTIFY " + channel() + ", '" + last + "'");
        const bool heard = eventually([&] {
            m_connection.get_notifs();
            return std::ranges::find(m_payloads, last) != m_payloads.end();
        });
        REQUIRE(heard);
        const int count = static_cast<int>(m_payloads.size()) - 1;
        m_payloads.clear();
        return count;
    }

  private:
    void operator()(const std::string& payload, int /*backend*/) override {
        m_payloads.push_back(payload);
    }

    pqxx::connection& m_connection;
    int m_calls = 0;
    std::vector<std::string> m_payloads;
};

struct PostgresFixture {
    PostgresFixture() { Schema(database).apply(); }

    Database database{emptied_database()};
    pqxx::connection postgres_connection{database.conninfo()};

    pqxx::result sql(const std::string& statement) {
        pqxx::work transaction(postgres_connection);
        pqxx::result result = transaction.exec(statement);
        transaction.commit();
        return result;
    }
    int number(const std::string& query) { return sql(query)[0][0].as<int>(); }
    /// Sends notifications of 7 kB each; a session that is not read holds as many as fit into its
    /// socket.
    void notify(const std::string& channel, int times) {
        sql("SELECT pg_notify('orizuru_" + channel +
            "', n || repeat('x', 7000)) FROM generate_series(1, " + std::to_string(times) + ") n");
    }
    bool all_is_read() {
        return eventually(
            [this] { return number("SELECT ceil(pg_notification_queue_usage())") == 0; });
    }
    /// True while one that falls asleep waits for transactions that are about to be committed.
    bool dozes_off() {
        return number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' "
                      "AND NOT granted") > 0;
    }
    bool someone_dozes_off() {
        return eventually([this] { return dozes_off(); });
    }
    std::string text(const std::string& query) { return sql(query)[0][0].as<std::string>(); }
};

} // namespace orizuru::test
