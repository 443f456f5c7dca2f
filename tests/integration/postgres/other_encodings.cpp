// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A ledger in a database whose encoding lacks characters of UTF-8.

#include "integration/postgres/ledger_fixture.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/schema.hpp>
#include <orizuru/producer.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace other_encodings_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct Encoding {
    std::string name;
    std::string has; ///< a text in it
};
const std::vector<Encoding> encodings{
    {"LATIN1", "caf\u00e9"}, {"WIN1251", "\u0436\u0443\u043a"}, {"EUC_JP", "\u65e5\u672c"}};

/// A database for each encoding, made once.
std::string database_in(const std::string& encoding) {
    const std::string name = "in_" + encoding;
    pqxx::connection connection(postgres().conninfo());
    pqxx::nontransaction direct(connection);
    if (direct.exec("SELECT FROM pg_database WHERE lower(datname) = lower('" + name + "')")
            .empty()) {
        direct.exec("CREATE DATABASE " + name +
                    " TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' "
                    "ENCODING '" +
                    encoding + "'");
    }
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    });
    const std::string conninfo = postgres().conninfo() + " dbname=" + lower;
    pqxx::connection emptied(conninfo);
    pqxx::nontransaction(emptied).exec("SET client_min_messages = warning;"
                                       "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    return conninfo;
}

struct Elsewhere : QueueFixture {
    explicit Elsewhere(const std::string& encoding = "LATIN1") : database(database_in(encoding)) {
        Schema(database).apply();
    }

    Database database;

    static LedgerOptions at_once() {
        return {.retry = {.max_attempts = 3, .backoff = backoff::fixed({})}};
    }
    static LedgerReconcilerOptions searching() {
        return {.sweep = 100ms, .retry = {.backoff = backoff::fixed({})}};
    }
};

// No encoding but UTF-8 has both of these.
const std::string text = "no \u20ac or \u65e5 \U0001f600";
const std::string in_ascii = "no \\u20ac or \\u65e5 \\U0001f600";

TEST_CASE("the reason of a failure that the database's encoding lacks is kept in ASCII") {
    for (const Encoding& encoding : encodings) {
        CAPTURE(encoding.name);
        const Elsewhere elsewhere(encoding.name);
        LedgerOptions options = Elsewhere::at_once();
        Ledger<std::string> ledger(elsewhere.database, "q", options);
        const auto error = [&](const std::string& id) { return ledger.find(id)->error; };

        const std::string failed = ledger.submit("x");
        CHECK(ledger.run(failed, [](pqxx::work&) { throw std::runtime_error(text); }) ==
              LedgerOutcome::failed);
        CHECK(error(failed) == in_ascii);
        CHECK(ledger.history(failed).back().note == in_ascii);
        CHECK(ledger.run(failed, [&](pqxx::work&) { throw std::runtime_error(encoding.has); }) ==
              LedgerOutcome::failed);
        CHECK(error(failed) == encoding.has);

        const std::string dead = ledger.submit("x");
        CHECK(ledger.run(dead, [](pqxx::work&) { throw DoNotRetry(text); }) == LedgerOutcome::dead);
        CHECK(error(dead) == in_ascii);
        CHECK(ledger.revive(dead));
        CHECK(ledger.give_up(dead, text));
        CHECK(error(dead) == in_ascii);

        const std::string cancelled = ledger.submit("x");
        CHECK(ledger.cancel(cancelled, text));
        CHECK(ledger.find(cancelled)->state == LedgerState::dead);
        CHECK(error(cancelled) == in_ascii);
        CHECK_FALSE(ledger.cancel(cancelled, text));

        options.retry.backoff = [](int, std::uint64_t) -> std::chrono::milliseconds {
            throw std::runtime_error(text);
        };
        Ledger<std::string> untimed(elsewhere.database, "q", options);
        const std::string id = untimed.submit("x");
        CHECK(untimed.run(id, [](pqxx::work&) { throw std::runtime_error("no"); }) ==
              LedgerOutcome::dead);
        CHECK(error(id) == "no; its backoff: " + in_ascii);
    }
}

TEST_CASE_FIXTURE(Elsewhere, "bytes that are no text are kept in ASCII, too") {
    Ledger<std::string> ledger(database, "q", at_once());
    const std::string id = ledger.submit("x");
    CHECK(ledger.run(id, [](pqxx::work&) { throw std::runtime_error("caf\xe9"); }) ==
          LedgerOutcome::failed);
    CHECK(ledger.find(id)->error == "caf\\ufffd");
}

TEST_CASE_FIXTURE(Elsewhere, "a job whose message was buried for such a reason has failed") {
    Ledger<std::string> ledger(database, "q", at_once());
    const std::string id = ledger.submit("x");
    LedgerReconciler reconciler(database, uri, searching());
    CHECK(reconciler.reconcile().sent == 1);
    {
        Consumer<Job<std::string>> consumer(uri, "q");
        consumer.next(0ms)->bury(text);
        // Messages of no job of this ledger, and with ids that it cannot have: one on the dead
        // list, one that is served next.
        Job<std::string> foreign = make_job(std::string("x"));
        foreign.id = "\u65e5\u672c";
        Producer<Job<std::string>> producer(uri, "q");
        producer.push(foreign);
        consumer.next(0ms)->bury("no");
        producer.push(foreign);
    }
    Reconciled found;
    CHECK(eventually([&] {
        found = reconciler.reconcile();
        return found.buried == 1;
    }));
    CHECK(ledger.find(id)->error == in_ascii);
}

TEST_CASE_FIXTURE(Elsewhere, "a job with an id that the database cannot have is unknown") {
    Ledger<std::string> ledger(database, "q", at_once());
    const std::string strange = "\u65e5\u672c";
    const auto nothing = [](pqxx::work&) {};
    CHECK(ledger.run(strange, nothing) == LedgerOutcome::unknown);
    CHECK_FALSE(ledger.find(strange));
    CHECK(ledger.history(strange).empty());
    CHECK_FALSE(ledger.cancel(strange, text));
    CHECK_FALSE(ledger.revive(strange));
    CHECK(ledger.submit_once("caf\u00e9", "x"));
    const std::vector<std::string> ids{"caf\u00e9", strange, ledger.submit("x")};
    CHECK(ledger.run_batch(ids, [](pqxx::work&, auto) {}) ==
          std::vector{LedgerOutcome::completed, LedgerOutcome::unknown, LedgerOutcome::completed});
}

} // namespace other_encodings_test
