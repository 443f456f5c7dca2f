// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Jobs of a ledger whose ids the user chooses.

#include "integration/postgres/ledger_fixture.hpp"
#include "integration/postgres/postgres_proxy.hpp"

#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

namespace ledger_own_ids_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct OwnIds : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};

    int jobs() { return number("SELECT count(*) FROM orizuru_ledger"); }
};

TEST_CASE_FIXTURE(OwnIds,
                  "a job with an id of one's own is submitted once, and runs as any other") {
    const std::string id = "order 'M\xc3\xbcller' \\ 17";
    CHECK(ledger.submit_once(id, "first"));
    CHECK_FALSE(ledger.submit_once(id, "second"));
    CHECK_FALSE(Ledger<std::string>(database, "another", options()).submit_once(id, "third"));
    CHECK(ledger.history(id).size() == 1);
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(reconciler.reconcile().sent == 1);
    Consumer<Job<std::string>> consumer(uri, "q");
    auto guard = consumer.next(0ms);
    REQUIRE(guard);
    CHECK((*guard)->id == id);
    CHECK(ledger.process(*guard, [](pqxx::work&, const std::string& payload) {
        CHECK(payload == "first");
    }) == LedgerOutcome::completed);
    CHECK_FALSE(ledger.submit_once(id, "fourth"));
    CHECK(jobs() == 1);
    ledger.purge(0s);
    CHECK(ledger.submit_once(id, "fifth"));
}

TEST_CASE_FIXTURE(OwnIds, "of two requests at once one makes the job, or the other when it is "
                          "rolled back") {
    pqxx::connection other(database.conninfo());
    bool committed = false;
    SUBCASE("committed") { committed = true; }
    SUBCASE("rolled back") {}
    std::future<bool> second;
    {
        pqxx::work transaction(other);
        CHECK(ledger.submit_once(transaction, "order 17", "x"));
        CHECK_FALSE(ledger.submit_once(transaction, "order 17", "x"));
        second =
            std::async(std::launch::async, [&] { return ledger.submit_once("order 17", "y"); });
        CHECK(second.wait_for(100ms) == std::future_status::timeout);
        if (committed) {
            transaction.commit();
        }
    }
    CHECK(second.get() != committed);
    CHECK(jobs() == 1);
    CHECK(ledger.history("order 17").size() == 1);
}

TEST_CASE_FIXTURE(OwnIds,
                  "an id that cannot be, or a payload too large, is refused before anything "
                  "is done") {
    pqxx::work transaction(postgres_connection);
    for (const std::string& id :
         {std::string(), std::string(513, 'x'), std::string("a\0b", 3), std::string("\xff")}) {
        CHECK_THROWS_AS(ledger.submit_once(id, "x"), std::invalid_argument);
        CHECK_THROWS_AS(ledger.submit_once(transaction, id, "x"), std::invalid_argument);
    }
    Ledger<std::string> small(database, "q", {.max_payload = 100});
    CHECK_THROWS_AS(small.submit_once(transaction, "a", std::string(100, 'x')), EncodeError);
    CHECK(ledger.submit_once(transaction, std::string(512, 'x'), "x")); // it can go on
    transaction.commit();
    CHECK(jobs() == 1);
}

TEST_CASE_FIXTURE(OwnIds,
                  "a job is there once, and its maker knows, wherever the connection ends") {
    PostgresProxy way;
    int made = 0;
    const int rounds = cut_everywhere(
        way,
        [&] { return std::make_unique<Ledger<std::string>>(way.to(database), "q", options()); },
        [&](Ledger<std::string>& cutting) {
            const std::string id = "job " + std::to_string(++made);
            REQUIRE(cutting.submit_once(id, "x"));
            REQUIRE(ledger.history(id).size() == 1);
            REQUIRE_FALSE(cutting.submit_once(id, "x"));
        });
    CHECK(rounds > 10);
    CHECK(jobs() == rounds);
}

} // namespace ledger_own_ids_test
