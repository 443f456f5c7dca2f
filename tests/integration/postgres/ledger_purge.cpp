// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A reconciler that forgets finished jobs.

#include "integration/postgres/ledger_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/schema.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ledger_purge_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct Purging : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};

    LedgerReconcilerOptions purging(std::chrono::seconds age) {
        LedgerReconcilerOptions chosen = reconciling();
        chosen.purge_after = age;
        return chosen;
    }
    /// Finished ones, that long ago.
    void fill(int count, const std::string& age, const std::string& queue = "q") {
        sql("INSERT INTO orizuru_ledger (id, queue, payload, max_attempts, state, finished_at) "
            "SELECT '" +
            age + queue + "' || n, '" + queue + "', '', 1, CASE WHEN n % 2 = 0 THEN 'completed' " +
            "ELSE 'dead' END, clock_timestamp() - interval '" + age + "' FROM generate_series(1, " +
            std::to_string(count) + ") n");
    }
    int jobs(const std::string& table = "orizuru_ledger") {
        return number("SELECT count(*) FROM " + table);
    }
    /// A table of the user's that refers to those of the jobs that a query finds.
    void refer(const std::string& query, const std::string& key = {}) {
        sql("CREATE TABLE orders (job text REFERENCES orizuru_ledger " + key + ");" +
            "INSERT INTO orders " + query);
    }

    std::vector<std::string> held; ///< ids
    std::vector<std::string> reasons;

    std::uint64_t purge() {
        held.clear();
        reasons.clear();
        return ledger.purge(1h, [this](std::string_view id, std::string_view reason) {
            held.emplace_back(id);
            reasons.emplace_back(reason);
        });
    }
};

TEST_CASE_FIXTURE(Purging,
                  "finished jobs are forgotten with their history, in all queues, by age") {
    const Ledger<std::string> other(database, "other", options());
    fill(2'500, "2 h");
    fill(10, "2 h", "other");
    fill(20, "30 min");
    const std::string waits = ledger.submit("x");
    LedgerReconciler reconciler(database, uri, purging(1h));
    CHECK(reconciler.reconcile().purged == 2'510);
    CHECK(jobs() == 21);
    CHECK(jobs("orizuru_ledger_history") == 21);
    CHECK(state(waits) == "pending");
    fill(5, "3 h");
    CHECK(reconciler.reconcile().purged == 0); // until the next sweep
}

TEST_CASE_FIXTURE(Purging, "a running reconciler forgets with each sweep, and sends meanwhile") {
    fill(5'000, "2 h");
    LedgerReconcilerOptions chosen = purging(1h);
    chosen.sweep = 100ms;
    const std::jthread running([&, this](const std::stop_token& token) {
        LedgerReconciler(database, uri, chosen).run(token);
    });
    ledger.submit("x");
    CHECK(eventually([&] { return redis.llen("q") == 1; }));
    CHECK(eventually([&] { return jobs() == 1; }));
    fill(10, "3 h");
    CHECK(eventually([&] { return jobs() == 1; }));
    CHECK(count(LedgerEventKind::failed) == 0);
}

TEST_CASE_FIXTURE(Purging, "a job that a foreign key refers to stays, and the rest is forgotten") {
    for (const std::string key : {"", "DEFERRABLE INITIALLY DEFERRED", "ON DELETE RESTRICT"}) {
        CAPTURE(key);
        fill(2'500, "2 h");
        refer("SELECT '2 hq' || n FROM unnest('{1, 700, 701, 2500}'::int[]) n", key);
        CHECK(purge() == 2'496);
        std::ranges::sort(held);
        CHECK(held == std::vector<std::string>{"2 hq1", "2 hq2500", "2 hq700", "2 hq701"});
        for (const std::string& reason : reasons) {
            CHECK(contains(reason, "\"orders_job_fkey\" on table \"orders\""));
        }
        CHECK(jobs() == 4);
        CHECK(jobs("orizuru_ledger_history") == 4);
        sql("DROP TABLE orders");
        CHECK(purge() == 4);
        CHECK(held.empty());
        CHECK(jobs("orizuru_ledger_history") == 0);
    }
}

TEST_CASE_FIXTURE(Purging, "jobs behind more that are held than a step takes are forgotten") {
    // Of one time, so that a step ends among them.
    sql("INSERT INTO orizuru_ledger (id, queue, payload, max_attempts, state, finished_at) "
        "SELECT 'held' || n, 'q', '', 1, 'dead', now() - interval '3 h' FROM "
        "generate_series(1, 2500) n");
    refer("SELECT id FROM orizuru_ledger");
    fill(600, "2 h");
    CHECK(purge() == 600);
    CHECK(held.size() == 2'500);
    std::ranges::sort(held);
    CHECK(std::ranges::adjacent_find(held) == held.end());
    CHECK(jobs() == 2'500);
}

TEST_CASE_FIXTURE(Purging, "a job to which an open transaction refers stays, and nothing waits") {
    fill(10, "2 h");
    refer("SELECT id FROM orizuru_ledger LIMIT 0");
    pqxx::connection user(database.conninfo());
    pqxx::work open(user);
    open.exec("INSERT INTO orders VALUES ('2 hq5')");
    {
        const std::jthread running([&, this](const std::stop_token& token) {
            LedgerReconciler(database, uri, purging(1h)).run(token);
        });
        const bool forgotten = eventually([&] { return jobs() == 1; });
        if (!forgotten) {
            open.abort(); // else the reconciler never ends, and no failed check ends the test
        }
        CHECK(forgotten);
        ledger.submit("x");
        CHECK(eventually([&] { return redis.llen("q") == 1; }));
    }
    REQUIRE(count(LedgerEventKind::held) == 1);
    CHECK(count(LedgerEventKind::failed) == 0);
    CHECK(purge() == 0);
    CHECK(held == std::vector<std::string>{"2 hq5"});
    CHECK(contains(reasons.back(), "lock timeout"));
    open.abort();
    CHECK(purge() == 1);
}

TEST_CASE_FIXTURE(Purging, "a purge waits a second at most for what others have locked") {
    fill(1'000, "2 h");
    pqxx::connection user(database.conninfo());
    pqxx::work open(user);
    open.exec("SELECT FROM orizuru_ledger FOR KEY SHARE");
    const auto step = [&] {
        return number("SELECT count(*) FROM orizuru_purge('ledger', 'q', 3600, 0, '{}')") - 1;
    };
    const Stopwatch stopwatch;
    const int found_held = step();
    CHECK(found_held > 0);
    CHECK(found_held < 20);
    CHECK(stopwatch.elapsed() < 10s);
    CHECK(text("SHOW lock_timeout") == "0");
    open.commit();
    CHECK(purge() == 1'000);
}

TEST_CASE_FIXTURE(Purging, "a key that refers to the history holds its job, too") {
    fill(10, "2 h");
    sql("CREATE TABLE audit (job text, number bigint, "
        "FOREIGN KEY (job, number) REFERENCES orizuru_ledger_history);"
        "INSERT INTO audit SELECT job, number FROM orizuru_ledger_history WHERE job = '2 hq5'");
    CHECK(purge() == 9);
    CHECK(held == std::vector<std::string>{"2 hq5"});
    CHECK(state("2 hq5") == "dead");
}

TEST_CASE_FIXTURE(Purging, "a program of the version before forgets what is not held") {
    fill(10, "2 h");
    refer("VALUES ('2 hq5')");
    CHECK(number("SELECT orizuru_ledger_purge('q', 3600)") == 9);
    CHECK(number("SELECT orizuru_ledger_purge('q', 3600)") == 0);
}

TEST_CASE_FIXTURE(Purging, "a reconciler tells of a job that is held, and forgets the rest") {
    fill(1'500, "2 h");
    refer("VALUES ('2 hq5')");
    LedgerReconcilerOptions chosen = purging(1h);
    chosen.sweep = 100ms;
    LedgerReconciler reconciler(database, uri, chosen);
    const Reconciled done = reconciler.reconcile();
    CHECK(done.purged == 1'499);
    CHECK(done.held == 1);
    REQUIRE(count(LedgerEventKind::held) == 1);
    CHECK(told.back().queue == "q");
    CHECK(told.back().job_id == "2 hq5");
    CHECK(contains(told.back().detail, "orders_job_fkey"));
    // With later sweeps, too; it tries that one again an hour later.
    fill(1, "90 min");
    CHECK(eventually([&] { return reconciler.reconcile().purged == 1; }));
    CHECK(count(LedgerEventKind::held) == 1);
    CHECK(jobs() == 1);
}

TEST_CASE_FIXTURE(Purging, "without an age nothing is forgotten") {
    fill(10, "2 h");
    CHECK(LedgerReconciler(database, uri, reconciling()).reconcile().purged == 0);
    CHECK(jobs() == 10);
}

TEST_CASE_FIXTURE(Purging, "an age that cannot be, and a user without the rights, are refused") {
    CHECK_THROWS_AS(LedgerReconciler(database, uri, purging(-1s)), std::invalid_argument);
    CHECK_THROWS_AS(LedgerReconciler(database, uri, purging(std::chrono::seconds::max())),
                    std::invalid_argument);
    sql("DROP ROLE IF EXISTS forgetful");
    sql("CREATE ROLE forgetful LOGIN");
    sql(Schema(database).grants("forgetful", TableUse::reconcile));
    const Database limited(database.conninfo() + " user=forgetful");
    CHECK_NOTHROW(LedgerReconciler(limited, uri, reconciling()));
    CHECK_THROWS_AS(LedgerReconciler(limited, uri, purging(1h)), SchemaError);
    sql(Schema(database).grants("forgetful", TableUse::purge));
    fill(10, "2 h");
    CHECK(LedgerReconciler(limited, uri, purging(1h)).reconcile().purged == 10);
    sql("DROP OWNED BY forgetful");
    sql("DROP ROLE forgetful");
}

} // namespace ledger_purge_test
