// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The tables: how they are made, their version, and the rights to use them.

#include "integration/postgres/postgres_fixture.hpp"

#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/postgres/schema.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace postgres_schema_test {

using namespace orizuru;
using namespace orizuru::test;

/// An empty database.
struct EmptyDatabase {
    std::string conninfo = new_database();
    Database database{conninfo};
    pqxx::connection connection{conninfo};

    pqxx::result sql(const std::string& statements) {
        return pqxx::nontransaction(connection).exec(statements);
    }
    /// Everything in the database, in words.
    std::string contents() {
        return sql("SELECT string_agg(line, E'\\n' ORDER BY line) FROM ("
                   "SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || "
                   "is_nullable || ' ' || coalesce(column_default, '') AS line "
                   "FROM information_schema.columns WHERE table_schema = 'public' "
                   "UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' "
                   "UNION ALL SELECT proname || prosrc FROM pg_proc WHERE pronamespace = "
                   "'public'::regnamespace "
                   "UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal"
                   ") everything")[0][0]
            .as<std::string>();
    }
    std::string sql_to(int version) { return sql_of_version(database, version); }
    void run_inbox() {
        CHECK(Inbox(database, "s").run("a", [](pqxx::work&) {}) == InboxOutcome::ran);
    }
};

TEST_CASE_FIXTURE(EmptyDatabase, "the tables are made once, and their rows stay") {
    Schema schema(database);
    CHECK(schema.applied() == 0);
    CHECK(schema.apply() == 0);
    CHECK(schema.applied() == Schema::version);
    run_inbox();
    CHECK(schema.apply() == Schema::version);
    CHECK(sql("SELECT count(*) FROM orizuru_inbox")[0][0].as<int>() == 1);
}

TEST_CASE_FIXTURE(EmptyDatabase, "the printed SQL makes the same tables as apply()") {
    sql(Schema(database).sql());
    EmptyDatabase applied;
    Schema(applied.database).apply();
    CHECK(contents() == applied.contents());
    run_inbox();
}

TEST_CASE_FIXTURE(EmptyDatabase,
                  "tables of an older version are brought to this one by either way") {
    const std::string first = sql_to(1);
    const std::string second = Schema(database).sql(1);
    sql(first);
    CHECK(Schema(database).applied() == 1);
    CHECK(Schema(database).apply() == 1);
    EmptyDatabase printed;
    printed.sql(first);
    printed.sql(second);
    CHECK(contents() == printed.contents());
    run_inbox();
}

TEST_CASE_FIXTURE(EmptyDatabase, "a migration waits for a transaction that has read the ledger and "
                                 "writes it then, and neither is the victim of a deadlock") {
    sql(sql_to(10));
    pqxx::connection other(conninfo);
    pqxx::work transaction(other);
    transaction.exec("SELECT count(*) FROM orizuru_ledger");
    std::thread migration([&] { CHECK(Schema(database).apply() == 10); });
    CHECK(eventually([&] {
        return sql("SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0].as<int>() == 1;
    }));
    CHECK_NOTHROW(transaction.exec("INSERT INTO orizuru_ledger (id, queue, payload, max_attempts) "
                                   "VALUES ('j', 'q', '', 1)"));
    transaction.commit();
    migration.join();
    CHECK(Schema(database).applied() == Schema::version);
    CHECK(sql("SELECT id FROM orizuru_ledger")[0][0].as<std::string>() == "j");
}

TEST_CASE_FIXTURE(EmptyDatabase, "the migration leaves a check of your own") {
    sql(sql_to(10));
    sql("ALTER TABLE orizuru_ledger ADD CHECK (max_attempts <= 5 OR queue <> 'q')");
    CHECK(Schema(database).apply() == 10);
    CHECK_THROWS_AS(sql("INSERT INTO orizuru_ledger (id, queue, payload, max_attempts) "
                        "VALUES ('j', 'q', '', 6)"),
                    pqxx::check_violation);
}

TEST_CASE_FIXTURE(EmptyDatabase, "when many make the tables at once, one does") {
    std::vector<int> before(4, -1);
    std::vector<std::thread> threads;
    for (int& version : before) {
        threads.emplace_back([&] { version = Schema(database).apply(); });
    }
    std::ranges::for_each(threads, &std::thread::join);
    CHECK(std::ranges::count(before, 0) == 1);
    CHECK(std::ranges::count(before, Schema::version) == 3);
}

TEST_CASE_FIXTURE(
    EmptyDatabase,
    "the database's default isolation does not matter to those who make the tables at once") {
    sql("ALTER DATABASE " + sql("SELECT current_database()")[0][0].as<std::string>() +
        " SET default_transaction_isolation = 'repeatable read'");
    for (int round = 0; round < 5; ++round) {
        const Database own(conninfo, {.prefix = "round_" + std::to_string(round)});
        std::vector<int> before(4, -1);
        std::vector<std::string> errors(before.size());
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < before.size(); ++i) {
            threads.emplace_back([&, i] {
                try {
                    before[i] = Schema(own).apply();
                } catch (const DatabaseError& error) {
                    errors[i] = error.what();
                }
            });
        }
        std::ranges::for_each(threads, &std::thread::join);
        for (const std::string& error : errors) {
            CHECK(error == "");
        }
        CHECK(std::ranges::count(before, 0) == 1);
        CHECK(std::ranges::count(before, Schema::version) == 3);
    }
}

TEST_CASE_FIXTURE(EmptyDatabase, "tables with other prefixes lie beside each other") {
    for (const char* prefix : {"first_", "second_"}) {
        const Database own(conninfo, {.prefix = prefix});
        Schema(own).apply();
        CHECK(Inbox(own, "s").run("a", [](pqxx::work&) {}) == InboxOutcome::ran);
    }
}

TEST_CASE_FIXTURE(EmptyDatabase, "tables of another version are refused, by name and number") {
    const auto refusal = [this] {
        return message_of<SchemaError>([this] { Inbox(database, "s"); });
    };
    CHECK(contains(refusal(), "do not exist"));
    Schema(database).apply();
    sql("DELETE FROM orizuru_schema WHERE version > 1");
    CHECK(contains(refusal(), "have version 1"));
    sql("INSERT INTO orizuru_schema VALUES (99)");
    CHECK(contains(refusal(), "have version 99"));
    CHECK(contains(refusal(), "'orizuru_...'"));
    CHECK(contains(message_of<SchemaError>([this] { Schema(database).apply(); }), "version 99"));
}

TEST_CASE_FIXTURE(EmptyDatabase, "sql() refuses a version that does not exist") {
    CHECK_THROWS_AS(static_cast<void>(Schema(database).sql(-1)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(Schema(database).sql(Schema::version + 1)),
                    std::invalid_argument);
}

TEST_CASE_FIXTURE(EmptyDatabase, "an inbox needs each of the rights that are granted for it") {
    Schema(database).apply();
    sql("DROP ROLE IF EXISTS \"a \"\"role\"\"\"");
    sql("CREATE ROLE \"a \"\"role\"\"\" LOGIN");
    const Database as_role(conninfo + " user='a \"role\"'");
    const auto use = [&] { static_cast<void>(Inbox(as_role, "s").run("a", [](pqxx::work&) {})); };
    CHECK(contains(message_of<SchemaError>(use), "'a \"role\"' has no right to SELECT"));
    const std::string grants = Schema(database).grants("a \"role\"", TableUse::inbox);
    sql(grants);
    CHECK_NOTHROW(use());
    for (const std::string right :
         {"SELECT ON TABLE orizuru_schema", "INSERT ON TABLE orizuru_inbox"}) {
        REQUIRE(contains(grants, right));
        sql("REVOKE " + right + " FROM \"a \"\"role\"\"\"");
        CHECK(contains(message_of<SchemaError>(use), "no right to " + right.substr(0, 6)));
        sql(grants);
    }
    CHECK(contains(
        message_of<DatabaseError>([&] { Inbox(as_role, "s").purge(std::chrono::seconds(0)); }),
        "permission denied"));
    sql(Schema(database).grants("a \"role\"", TableUse::purge));
    CHECK(Inbox(as_role, "s").purge(std::chrono::seconds(0)) == 1);
    sql("DROP OWNED BY \"a \"\"role\"\"\"; DROP ROLE \"a \"\"role\"\"\"");
}

} // namespace postgres_schema_test
