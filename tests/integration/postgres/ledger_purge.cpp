// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A reconciler that forgets finished jobs.

#include "integration/postgres/ledger_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/schema.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

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
