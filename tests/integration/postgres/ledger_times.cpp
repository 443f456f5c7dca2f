// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Jobs of a ledger that wait for their time, and that expire.

#include "integration/postgres/ledger_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_counts.hpp>
#include <orizuru/postgres/ledger_entry.hpp>
#include <orizuru/postgres/ledger_job_options.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace ledger_times_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct Times : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};
    LedgerReconciler reconciler{database, uri, reconciling()};

    JobTime now() { return ledger.count().now; }
    /// Shifts the job's times into the past, in place of a wait.
    void pass(const std::string& id, std::chrono::milliseconds time) {
        const std::string by = std::to_string(time.count()) + " * interval '1 ms'";
        sql("UPDATE orizuru_ledger SET due = due - " + by + ", expires = expires - " + by +
            " WHERE id = '" + id + "'");
    }
    /// The job is dead because it has expired, has had no effect, and nothing runs it again.
    void check_expired(const std::string& id, const std::string& history) {
        const auto entry = ledger.find(id);
        REQUIRE(entry);
        CHECK(entry->state == LedgerState::dead);
        CHECK(entry->error == "it has expired");
        CHECK(entry->finished_at);
        CHECK(changes(id) == history);
        CHECK(ledger.history(id).back().note == "it has expired");
        CHECK(ledger.run(id, effect(id)) == LedgerOutcome::repeated);
        CHECK(effects(id) == 0);
    }
};

TEST_CASE_FIXTURE(Times, "a job with a delay is sent and runs when it is due, not before") {
    const std::string id = ledger.submit("x", {.delay = 1h});
    const auto entry = ledger.find(id);
    REQUIRE(entry);
    CHECK(entry->state == LedgerState::pending);
    REQUIRE(entry->due);
    CHECK(std::chrono::abs(*entry->due - entry->created_at - 1h) < 1s); // two readings
    CHECK_FALSE(entry->expires_at);
    CHECK(reconciler.reconcile().sent == 0);
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::not_due);
    CHECK(ledger.run_batch(std::vector{id}, [](pqxx::work&, auto) { FAIL("ran"); }) ==
          std::vector{LedgerOutcome::not_due});
    CHECK(redis.llen("q") == 0);

    pass(id, 1h);
    const Reconciled due = reconciler.reconcile();
    CHECK(due.sent == 1);
    CHECK(due.retried == 0);
    CHECK_FALSE(ledger.find(id)->due);
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::completed});
    CHECK(effects(id) == 1);
    CHECK(changes(id) == ">pending pending>running running>completed");
}

TEST_CASE_FIXTURE(Times, "a sleeping reconciler sends a job when it is due") {
    const std::jthread running([this](const std::stop_token& token) {
        LedgerReconciler own(database, uri, reconciling());
        own.run(token);
    });
    const std::string first = ledger.submit("at once");
    REQUIRE(eventually([&] { return redis.llen("q") == 1; }));
    const std::string late = ledger.submit("late", {.delay = 24h});
    const auto begun = std::chrono::steady_clock::now();
    const std::string soon = ledger.submit("soon", {.delay = 300ms});
    REQUIRE(eventually([&] { return redis.llen("q") == 2; }));
    CHECK(std::chrono::steady_clock::now() - begun >= 299ms);
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::completed, LedgerOutcome::completed});
    CHECK(effects(soon) == 1);
    CHECK(effects(late) == 0);
}

TEST_CASE_FIXTURE(Times, "a job is due at a time of the database; one that is past means at once") {
    const JobTime at = now() + 30s;
    const std::string later = ledger.submit("x", {.delay = 1h, .at = at});
    const std::string past = ledger.submit("y", {.at = now() - 1h});
    CHECK(ledger.find(later)->due == at);
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::completed});
    CHECK(effects(past) == 1);
    CHECK(state(later) == "pending");
}

TEST_CASE_FIXTURE(Times, "a job that is due is claimed although no reconciler has looked at it") {
    const std::string one = ledger.submit("x", {.delay = 1h});
    const std::string many = ledger.submit("y", {.delay = 1h});
    pass(one, 2h);
    pass(many, 2h);
    CHECK(ledger.run(one, effect(one)) == LedgerOutcome::completed);
    CHECK(ledger.run_batch(std::vector{many}, [&](pqxx::work& tx, auto) { effect(many)(tx); }) ==
          std::vector{LedgerOutcome::completed});
    CHECK(effects(one) + effects(many) == 2);
    CHECK(reconciler.reconcile().sent == 0);
}

TEST_CASE_FIXTURE(Times, "jobs that wait stay where they are when Redis has lost all") {
    ledger.submit("now");
    const std::string late = ledger.submit("late", {.delay = 1h});
    CHECK(reconciler.reconcile().sent == 1);
    redis.command({"FLUSHALL"});
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::completed});
    pass(late, 1h);
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::completed});
}

TEST_CASE_FIXTURE(Times, "more jobs than a step takes are due at once") {
    const std::vector<std::string> payloads(2'500, "x");
    const auto ids = ledger.submit_all(payloads, {.delay = 1h});
    CHECK(ledger.count().scheduled == 2'500);
    CHECK(ledger.count().pending == 0);
    ledger.submit("now");
    CHECK(reconciler.reconcile().sent == 1); // those that wait are not in its way
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::completed});
    sql("UPDATE orizuru_ledger SET due = clock_timestamp() WHERE due IS NOT NULL");
    CHECK(ledger.count().scheduled == 0);
    CHECK(ledger.count().pending == 2'500);
    CHECK(eventually([&] {
        reconciler.reconcile();
        return redis.llen("q") == 2'500;
    }));
    CHECK(ledger.count().scheduled == 0);
    CHECK(ledger.count().pending == 2'500);
}

TEST_CASE_FIXTURE(Times,
                  "a run puts its work off by a submit in its own transaction: no try fails, "
                  "and a run that fails has put nothing off") {
    const auto put_off = [&](pqxx::work& tx) { ledger.submit(tx, "x", {.delay = 1h}); };
    const std::string id = ledger.submit("x");
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        put_off(tx);
        throw std::runtime_error("failed behind it");
    }) == LedgerOutcome::failed);
    CHECK(ledger.count().scheduled == 0);
    CHECK(ledger.run(id, put_off) == LedgerOutcome::completed);
    CHECK(ledger.count().scheduled == 1);
    CHECK(ledger.list(LedgerState::pending).at(0).attempt == 0);
}

TEST_CASE_FIXTURE(Times, "every submit takes the options") {
    const LedgerJobOptions chosen{.delay = 1h, .expires_after = 2h, .max_attempts = 7};
    std::vector<std::string> ids{ledger.submit("x", chosen)};
    ids.push_back(ledger.submit_all(std::vector<std::string>{"x"}, chosen).front());
    CHECK(ledger.submit_once("mine", "x", chosen));
    CHECK_FALSE(ledger.submit_once("mine", "x", {}));
    {
        pqxx::work transaction(postgres_connection);
        ids.push_back(ledger.submit(transaction, "x", chosen));
        ids.push_back(
            ledger.submit_all(transaction, std::vector<std::string>{"x"}, chosen).front());
        CHECK(ledger.submit_once(transaction, "theirs", "x", chosen));
        transaction.commit();
    }
    ids.insert(ids.end(), {"mine", "theirs"});
    for (const std::string& id : ids) {
        const auto entry = ledger.find(id);
        REQUIRE(entry);
        REQUIRE(entry->due);
        REQUIRE(entry->expires_at);
        CHECK(std::chrono::abs(*entry->due - entry->created_at - 1h) < 1s);  // two readings
        CHECK(std::chrono::abs(*entry->expires_at - *entry->due - 2h) < 1s); // two readings
        CHECK(entry->max_attempts == 7);
    }
    const LedgerCounts counts = ledger.count();
    CHECK(counts.scheduled == ids.size());
    CHECK_FALSE(counts.oldest);
    CHECK(ledger.list(LedgerState::pending).size() == ids.size());
}

TEST_CASE_FIXTURE(Times, "a job that waits is given up, cancelled and revived as others") {
    const std::string one = ledger.submit("x", {.delay = 1h});
    const std::string other = ledger.submit("y", {.delay = 1h});
    CHECK(ledger.give_up(one, "no"));
    CHECK(ledger.cancel(other, "no"));
    CHECK_FALSE(ledger.find(one)->due);
    CHECK(ledger.revive(one));
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::completed});
    CHECK(state(other) == "dead");
}

TEST_CASE_FIXTURE(Times, "a job whose message comes too late expires, in place of the run") {
    const std::string one = ledger.submit("x", {.expires_after = 1h});
    const std::string many = ledger.submit("y", {.expires_after = 1h});
    const std::string lives = ledger.submit("z", {.expires_after = 3h});
    for (const std::string& id : {one, many, lives}) {
        pass(id, 2h);
    }
    CHECK(ledger.run(one, effect(one)) == LedgerOutcome::dead);
    const std::vector<std::string> ids{many, lives};
    std::vector<std::size_t> ran;
    CHECK(ledger.run_batch(ids, [&](pqxx::work&, auto claimed) {
        ran.assign(claimed.begin(), claimed.end());
    }) == std::vector{LedgerOutcome::dead, LedgerOutcome::completed});
    CHECK(ran == std::vector<std::size_t>{1});
    check_expired(one, ">pending pending>dead");
    check_expired(many, ">pending pending>dead");
}

TEST_CASE_FIXTURE(Times, "a job for which no message comes expires, and on_event is told") {
    const std::string waits = ledger.submit("x", {.delay = 1h, .expires_after = 1h});
    const std::string sent = ledger.submit("y", {.expires_after = 1h});
    const std::string lives = ledger.submit("z", {.expires_after = 3h});
    CHECK(reconciler.reconcile().sent == 2);
    pass(waits, 3h);
    pass(sent, 2h);
    pass(lives, 2h);
    const Reconciled expired = reconciler.reconcile();
    CHECK(expired.sent == 0);
    CHECK(expired.died == 2);
    CHECK(count(LedgerEventKind::died) == 2);
    check_expired(waits, ">pending pending>dead");
    check_expired(sent, ">pending pending>dead");
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::repeated, LedgerOutcome::completed});
    CHECK(effects(lives) == 1);
}

TEST_CASE_FIXTURE(Times, "a try that has begun ends as ever; no other begins once it has expired") {
    const std::string done = ledger.submit("x", {.expires_after = 1h});
    CHECK(ledger.run(done, [&](pqxx::work& tx) {
        pass(done, 2h);
        effect(done)(tx);
    }) == LedgerOutcome::completed);

    const std::string fails = ledger.submit("y", {.expires_after = 1h});
    CHECK(ledger.run(fails, fail) == LedgerOutcome::failed);
    sql("ALTER TABLE orizuru_ledger DISABLE TRIGGER orizuru_ledger_follow");
    pass(fails, 2h);
    sql("ALTER TABLE orizuru_ledger ENABLE TRIGGER orizuru_ledger_follow");
    CHECK(ledger.run(fails, effect(fails)) == LedgerOutcome::dead);
    check_expired(fails, ">pending pending>running running>failed failed>dead");

    const std::string lost = ledger.submit("z", {.expires_after = 1h});
    sql("SELECT orizuru_ledger_claim('" + lost + "', 'gone/1', 60000)");
    sql("UPDATE orizuru_ledger SET expires = clock_timestamp() WHERE id = '" + lost + "'");
    CHECK(reconciler.reconcile().died == 0); // its lease holds
    CHECK(ledger.run(lost, effect(lost)) == LedgerOutcome::elsewhere);
    end_lease(lost);
    CHECK(reconciler.reconcile().died == 1);
    check_expired(lost, ">pending pending>running running>dead");
}

TEST_CASE_FIXTURE(Times, "a job that lives again does not expire") {
    const std::string id = ledger.submit("x", {.expires_after = 1h});
    pass(id, 2h);
    CHECK(reconciler.reconcile().died == 1);
    CHECK(ledger.revive(id));
    CHECK_FALSE(ledger.find(id)->expires_at);
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::completed});
}

TEST_CASE_FIXTURE(Times, "a job that is revived by plain SQL does not expire either") {
    const std::string id = ledger.submit("x", {.expires_after = 1h});
    pass(id, 2h);
    CHECK(reconciler.reconcile().died == 1);
    sql("UPDATE orizuru_ledger SET state = 'pending', max_attempts = attempt + 1");
    CHECK_FALSE(ledger.find(id)->expires_at);
    CHECK(reconciler.reconcile().sent == 1);
}

TEST_CASE_FIXTURE(Times, "a job whose next try would come too late is dead when it fails") {
    LedgerOptions slow = options();
    slow.retry.backoff = backoff::fixed(1h);
    Ledger<std::string> patient(database, "q", slow);
    const std::string id = patient.submit("x", {.expires_after = 30min});
    CHECK(patient.run(id, fail) == LedgerOutcome::dead);
    CHECK(changes(id) == ">pending pending>running running>dead");
    CHECK(patient.find(id)->error == "no");
}

TEST_CASE_FIXTURE(Times, "a sleeping reconciler ends a job when it expires") {
    ledger.submit("lasts", {.expires_after = 24h});
    const std::jthread running([this](const std::stop_token& token) {
        LedgerReconciler own(database, uri, reconciling());
        own.run(token);
    });
    REQUIRE(eventually([&] { return redis.llen("q") == 1; }));
    const std::string id = ledger.submit("x", {.expires_after = 300ms});
    CHECK(eventually([&] { return state(id) == "dead"; }));
    CHECK(ledger.find(id)->finished_at >= ledger.find(id)->expires_at);
    const std::string late = ledger.submit("y", {.delay = 200ms, .expires_after = 200ms});
    CHECK(eventually([&] { return state(late) == "dead"; }));
    CHECK(ledger.find(late)->finished_at >= ledger.find(late)->expires_at);
}

TEST_CASE_FIXTURE(Times, "how long the oldest has waited counts from when it was due") {
    const std::string id = ledger.submit("x", {.delay = 2h});
    CHECK_FALSE(ledger.count().oldest);
    pass(id, 3h); // and no reconciler looks
    const LedgerCounts late = ledger.count();
    CHECK(late.pending == 1);
    CHECK(late.scheduled == 0);
    REQUIRE(late.oldest);
    CHECK(std::chrono::abs(late.now - *late.oldest - 1h) < 1min);
    CHECK(reconciler.reconcile().sent == 1);
    const LedgerCounts sent = ledger.count();
    CHECK(sent.pending == 1);
    REQUIRE(sent.oldest);
    CHECK(sent.now - *sent.oldest < 1min);
}

TEST_CASE_FIXTURE(Times, "options out of range are refused by name, and nothing is submitted") {
    const auto refused = [&](const LedgerJobOptions& chosen, const char* why) {
        CHECK_THROWS_WITH_AS(ledger.submit("x", chosen), why, std::invalid_argument);
        pqxx::work transaction(postgres_connection);
        CHECK_THROWS_AS(ledger.submit(transaction, "x", chosen), std::invalid_argument);
        CHECK_THROWS_AS(ledger.submit_all(std::vector<std::string>{"x"}, chosen),
                        std::invalid_argument);
        CHECK_THROWS_AS(ledger.submit_once("id", "x", chosen), std::invalid_argument);
        transaction.commit(); // it can go on
    };
    constexpr std::chrono::hours longest(24 * 365 * 100);
    refused({.delay = longest + 1ms}, "the delay of a ledger's job must be up to 100 years");
    refused({.delay = std::chrono::milliseconds::max()},
            "the delay of a ledger's job must be up to 100 years");
    refused({.at = JobTime::max()}, "a ledger's job must be due in the years 1970 to 9999");
    refused({.at = JobTime::min()}, "a ledger's job must be due in the years 1970 to 9999");
    refused({.expires_after = 0ms}, "a ledger's job must expire 1 ms to 100 years after it is due");
    refused({.expires_after = longest + 1ms},
            "a ledger's job must expire 1 ms to 100 years after it is due");
    refused({.max_attempts = 0}, "max_attempts of a ledger's job must be 1 or more");
    CHECK(number("SELECT count(*) FROM orizuru_ledger") == 0);

    CHECK(ledger.find(ledger.submit("x", {.delay = longest, .expires_after = longest}))->due);
    CHECK_FALSE(ledger.find(ledger.submit("y", {.delay = -1h}))->due);
}

TEST_CASE_FIXTURE(Times, "a time in the table is refused where the state has none") {
    const std::string id = ledger.submit("x");
    CHECK(ledger.give_up(id, "no"));
    const std::string all = "INSERT INTO orizuru_ledger (id, queue, payload, max_attempts, state, "
                            "due, finished_at) VALUES ('other', 'q', '', 1, ";
    CHECK_THROWS_AS(sql(all + "'dead', now(), now())"), pqxx::check_violation);
    CHECK_THROWS_AS(sql(all + "'failed', NULL, NULL)"), pqxx::check_violation);
    // Nothing would ever send it, or it would be in the way of others.
    const std::string waits = ledger.submit("x", {.delay = 1h});
    CHECK_THROWS_AS(sql("UPDATE orizuru_ledger SET due = NULL WHERE id = '" + waits + "'"),
                    pqxx::check_violation);
    CHECK_THROWS_AS(sql("UPDATE orizuru_ledger SET sent_epoch = 0 WHERE id = '" + waits + "'"),
                    pqxx::check_violation);
    CHECK_THROWS_AS(sql(all + "'pending', now(), NULL)"), pqxx::check_violation);
}

} // namespace ledger_times_test
