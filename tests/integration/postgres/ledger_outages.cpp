// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Workers and a reconciler at work while PostgreSQL is killed and Redis is emptied, and runs while
// commits wait for a standby that does not answer.

#include "integration/postgres/ledger_fixture.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace ledger_outages_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(QueueFixture, "each job has one effect although PostgreSQL is killed and Redis "
                                "emptied") {
    PostgresServer postgres_server;
    const Database database(postgres_server.conninfo());
    Schema(database).apply();
    pqxx::nontransaction(*std::make_unique<pqxx::connection>(database.conninfo()))
        .exec("CREATE TABLE effects (job text)");
    Ledger<std::string> ledger(
        database, "q",
        {.lease = 1s, .retry = {.max_attempts = 1000, .backoff = backoff::fixed(10ms)}});
    // Here, since it throws while PostgreSQL is away.
    LedgerReconciler reconciler(database, uri, {.sweep = 24h, .redis_check = 100ms});
    std::vector<std::jthread> threads;
    threads.emplace_back([&](const std::stop_token& token) { reconciler.run(token); });
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&](const std::stop_token& token) {
            Consumer<Job<std::string>> consumer(uri, "q", {.lease = 1s});
            while (!token.stop_requested()) {
                try {
                    auto guard = consumer.next(100ms);
                    if (!guard) {
                        continue;
                    }
                    const std::string id = (*guard)->id;
                    ledger.process(*guard, [&](pqxx::work& tx, const std::string&) {
                        tx.exec("INSERT INTO effects VALUES (" + tx.quote(id) + ")");
                    });
                } catch (const Error&) { // a flushed Redis has forgotten the message
                }
            }
        });
    }
    int jobs = 0;
    for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < 100; ++i, ++jobs) {
            ledger.submit("x");
        }
        round % 2 == 0 ? postgres_server.restart() : redis.flushall();
    }
    const auto count = [&](const std::string& from) {
        pqxx::connection connection(database.conninfo());
        return pqxx::nontransaction(connection)
            .exec("SELECT count(*) FROM " + from)[0][0]
            .as<int>();
    };
    CHECK(eventually([&] { return count("orizuru_ledger WHERE state = 'completed'") == jobs; }));
    CHECK(count("effects") == jobs);
    CHECK(count("(SELECT DISTINCT job FROM effects) AS jobs") == jobs);
}

// The COMMIT that waits for a standby that does not exist has happened; its connection is ended
// before it is answered.
TEST_CASE("a COMMIT that happened and was not answered is recognised as one's own") {
    PostgresServer server({"synchronous_standby_names=nobody", "synchronous_commit=local"});
    const Database database(server.conninfo());
    Schema(database).apply();
    pqxx::connection watching(database.conninfo());
    pqxx::nontransaction watch(watching);
    watch.exec("CREATE TABLE effects (job text)");
    Ledger<std::string> ledger(database, "q");
    const std::string id = ledger.submit("x");
    const std::jthread cutting([&] {
        static_cast<void>(eventually([&] {
            return !watch
                        .exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                              "WHERE wait_event = 'SyncRep'")
                        .empty();
        }));
    });
    int calls = 0;
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        tx.exec("INSERT INTO effects VALUES ('x')");
        if (++calls == 1) {
            tx.exec("SET LOCAL synchronous_commit = on");
        }
    }) == LedgerOutcome::completed);
    CHECK(calls == 2);
    pqxx::connection looking(database.conninfo());
    CHECK(pqxx::nontransaction(looking).exec("SELECT count(*) FROM effects")[0][0].as<int>() == 1);
    CHECK(ledger.history(id).size() == 3);
}

TEST_CASE("a run keeps its lease while commits wait for a standby that is gone") {
    PostgresServer server({"synchronous_standby_names=nobody", "synchronous_commit=local"});
    const Database database(server.conninfo());
    Schema(database).apply();
    const std::string id = Ledger<std::string>(database, "q").submit("x");
    pqxx::connection watching(database.conninfo());
    pqxx::nontransaction watch(watching);
    const auto is_due_since = [&](const std::string& time) {
        return watch.exec("SELECT due > " + time + " FROM orizuru_ledger")[0][0].as<bool>();
    };
    const auto is_renewed = [&](pqxx::work& tx) {
        tx.exec("SET LOCAL synchronous_commit = local");
        const auto begun = watch.exec("SELECT clock_timestamp()")[0][0].as<std::string>();
        const auto renewed = "'" + begun + "'::timestamptz + interval '4500 ms'";
        CHECK(eventually([&] { return is_due_since(renewed); }));
        CHECK(is_due_since("clock_timestamp()"));
    };
    Ledger<std::string> waiting(
        Database(database.conninfo() + " options='-c synchronous_commit=on -c lock_timeout=1s'"),
        "q", {.lease = 1500ms});
    CHECK(waiting.run(id, is_renewed) == LedgerOutcome::completed);
}

} // namespace ledger_outages_test
