// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the tests with PostgreSQL: one server per process, and for each case a database of its
// own with the tables, read by plain pqxx.

#pragma once

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/postgres_server.hpp"

#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/schema.hpp>

#include <pqxx/pqxx>

#include <stdexcept>
#include <string>

namespace orizuru::test {

inline PostgresServer& postgres() {
    static PostgresServer instance;
    return instance;
}

/// An empty database, and its connection string.
inline std::string new_database() {
    static int count = 0;
    const std::string name = "test_" + std::to_string(++count);
    pqxx::connection connection(postgres().conninfo());
    pqxx::nontransaction(connection).exec("CREATE DATABASE " + name);
    return postgres().conninfo() + " dbname=" + name;
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

struct PostgresFixture {
    PostgresFixture() { Schema(database).apply(); }

    Database database{new_database()};
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
    std::string text(const std::string& query) { return sql(query)[0][0].as<std::string>(); }
};

} // namespace orizuru::test
