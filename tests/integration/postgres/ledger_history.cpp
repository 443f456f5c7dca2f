// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Jobs of which the ledger notes only what went wrong.

#include "integration/postgres/ledger_fixture.hpp"

#include <orizuru/jobs/backoff.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_entry.hpp>
#include <orizuru/postgres/ledger_options.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <string>
#include <vector>

namespace ledger_history_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct Failures : LedgerFixture {
    static LedgerOptions noting_failures() {
        LedgerOptions chosen = options();
        chosen.history = LedgerHistory::failures;
        return chosen;
    }
    Ledger<std::string> ledger{database, "q", noting_failures()};
    LedgerReconciler reconciler{database, uri, reconciling()};
};

TEST_CASE_FIXTURE(Failures, "a job that goes well has no history, alone and in batches") {
    const std::string one = ledger.submit("x");
    const auto many = ledger.submit_all(std::vector<std::string>{"y", "z"});
    CHECK(ledger.submit_once("mine", "x"));
    CHECK(reconciler.reconcile().sent == 4);
    CHECK(ledger.run(one, effect(one)) == LedgerOutcome::completed);
    CHECK(ledger.run("mine", effect("mine")) == LedgerOutcome::completed);
    CHECK(ledger.run_batch(many, [](pqxx::work&, auto) {}) ==
          std::vector{LedgerOutcome::completed, LedgerOutcome::completed});
    CHECK(number("SELECT count(*) FROM orizuru_ledger WHERE state = 'completed'") == 4);
    CHECK(number("SELECT count(*) FROM orizuru_ledger_history") == 0);
    CHECK(ledger.history(one).empty());
    CHECK(ledger.run(one, effect(one)) == LedgerOutcome::repeated);
    CHECK_FALSE(ledger.submit_once("mine", "x"));
}

TEST_CASE_FIXTURE(Failures, "of a job that fails, is lost, dies and lives again each is noted") {
    const std::string id = ledger.submit("x");
    CHECK(ledger.run(id, fail) == LedgerOutcome::failed);
    CHECK(reconciler.reconcile().retried == 1);
    CHECK(changes(id) == "running>failed");
    CHECK(ledger.history(id).front().note == "no");
    sql("SELECT orizuru_ledger_claim('" + id + "', 'gone/1', 60000)");
    end_lease(id);
    CHECK(reconciler.reconcile().lease_ended == 1);
    CHECK(ledger.give_up(id, "nobody needs it"));
    CHECK(ledger.revive(id));
    CHECK(ledger.cancel(id, "nor now"));
    CHECK(changes(id) == "running>failed running>pending pending>dead dead>pending pending>dead");
    CHECK(ledger.revive(id));
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::completed);
    CHECK(changes(id) == "running>failed running>pending pending>dead dead>pending pending>dead "
                         "dead>pending");
    CHECK(effects(id) == 1);
}

TEST_CASE_FIXTURE(Failures, "what was claimed from a run that had lost it is noted") {
    const std::string id = ledger.submit("x");
    sql("SELECT orizuru_ledger_claim('" + id + "', 'gone/1', 60000)");
    end_lease(id);
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::completed);
    CHECK(changes(id) == "running>running");
}

TEST_CASE_FIXTURE(Failures, "the time for retries counts from the first failure") {
    LedgerOptions brief = noting_failures();
    brief.retry.max_attempts = 100;
    brief.retry.retry_for = 1h;
    brief.retry.backoff = backoff::fixed(1s);
    Ledger<std::string> own(database, "q", brief);
    const std::string id = own.submit("x");
    CHECK(own.run(id, fail) == LedgerOutcome::failed);
    sql("UPDATE orizuru_ledger_history SET at = at - interval '2 h'");
    sql("ALTER TABLE orizuru_ledger DISABLE TRIGGER orizuru_ledger_follow");
    sql("UPDATE orizuru_ledger SET due = clock_timestamp()");
    sql("ALTER TABLE orizuru_ledger ENABLE TRIGGER orizuru_ledger_follow");
    CHECK(own.run(id, fail) == LedgerOutcome::dead);
}

TEST_CASE_FIXTURE(Failures, "each Ledger chooses for the jobs that it submits, whoever runs them") {
    Ledger<std::string> noting_all(database, "q", options());
    const std::string whole = noting_all.submit("x");
    const std::string brief = ledger.submit("x");
    CHECK(ledger.run(whole, effect(whole)) == LedgerOutcome::completed);
    CHECK(noting_all.run(brief, effect(brief)) == LedgerOutcome::completed);
    CHECK(changes(whole) == ">pending pending>running running>completed");
    CHECK(changes(brief).empty());
}

} // namespace ledger_history_test
