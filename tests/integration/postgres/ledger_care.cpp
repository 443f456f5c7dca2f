// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// How one looks after a ledger: what it has, and dead jobs that live again.

#include "integration/postgres/ledger_fixture.hpp"

#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/schema.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace ledger_care_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct Care : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};

    std::string dead_job() {
        std::string id = ledger.submit("x");
        CHECK(ledger.give_up(id, "nobody needs it"));
        return id;
    }
    std::vector<std::string> listed(LedgerState state, std::size_t most = 100,
                                    const std::string& after = {}) {
        std::vector<std::string> ids;
        for (const LedgerEntry& entry : ledger.list(state, most, after)) {
            CHECK(entry.state == state);
            CHECK(entry.queue == "q");
            ids.push_back(entry.id);
        }
        return ids;
    }
};

TEST_CASE_FIXTURE(Care, "a dead job that is revived is sent and runs again, and its history goes "
                        "on") {
    const std::string id = ledger.submit("x");
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(ledger.give_up(id, "too early"));
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::repeated});
    CHECK(ledger.revive(id)); // while its message is known as sent
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(redis.llen("q") == 1);
    for (int i = 0; i < 3; ++i) {
        ledger.run(id, fail);
    }
    CHECK(state(id) == "dead");
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::repeated});
    CHECK(reconciler.reconcile().sent == 0);

    CHECK(ledger.revive(id));
    const LedgerEntry entry = ledger.find(id).value();
    CHECK(entry.state == LedgerState::pending);
    CHECK(entry.attempt == 3);
    CHECK(entry.max_attempts == 4);
    CHECK(entry.error == "no");
    CHECK_FALSE(entry.finished_at);
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::completed});
    CHECK(effects(id) == 1);
    CHECK(changes(id) == ">pending pending>dead dead>pending pending>running running>failed "
                         "failed>running running>failed "
                         "failed>running running>dead dead>pending pending>running "
                         "running>completed");
    const LedgerChange revived = ledger.history(id)[9];
    CHECK(revived.who.starts_with("worker:"));
    CHECK(revived.note.empty());
    CHECK(revived.attempt == 3);
}

TEST_CASE_FIXTURE(Care,
                  "a revived job has as many more attempts as are asked for, and no fewer than "
                  "it had") {
    const std::string unused = dead_job();
    CHECK(ledger.revive(unused));
    CHECK(ledger.find(unused)->max_attempts == 3);

    const std::string id = dead_job();
    CHECK(ledger.revive(id, 5));
    CHECK(ledger.find(id)->max_attempts == 5);
    for (int i = 0; i < 4; ++i) {
        CHECK(ledger.run(id, fail) == LedgerOutcome::failed);
    }
    CHECK(ledger.run(id, fail) == LedgerOutcome::dead);
    CHECK(ledger.revive(id));
    CHECK(ledger.run(id, fail) == LedgerOutcome::dead);
    for (const int bad : {0, -1, 1'000'001}) {
        CHECK_THROWS_AS(ledger.revive(id, bad), std::invalid_argument);
    }
    CHECK(state(id) == "dead");
}

TEST_CASE_FIXTURE(Care, "a run whose job is cancelled commits nothing, and is told") {
    Ledger<std::string> quick(database, "q", with_lease(300ms));
    const std::string id = quick.submit("x");
    const auto outcome = quick.run(id, [&](pqxx::work& tx, const std::stop_token& token) {
        tx.exec("INSERT INTO effects VALUES (" + tx.quote(id) + ")");
        CHECK_FALSE(token.stop_requested());
        CHECK(ledger.cancel(id, "wrong address"));
        CHECK(eventually([&] { return token.stop_requested(); }));
    });
    CHECK(outcome == LedgerOutcome::dead);
    CHECK(effects(id) == 0);
    CHECK(ledger.find(id)->error == "wrong address");
    CHECK(changes(id) == ">pending pending>running running>dead");
    CHECK_FALSE(ledger.cancel(id, "again"));

    CHECK(ledger.revive(id));
    CHECK(quick.run(id, [](pqxx::work&, const std::stop_token& token) {
        CHECK_FALSE(token.stop_requested());
    }) == LedgerOutcome::completed);
}

TEST_CASE_FIXTURE(Care, "a run that throws since its job was cancelled changes nothing more") {
    const std::string id = ledger.submit("x");
    CHECK(ledger.run(id, [&](pqxx::work&) {
        CHECK(ledger.cancel(id, "wrong address"));
        throw std::runtime_error("stopped");
    }) == LedgerOutcome::dead);
    CHECK(ledger.find(id)->error == "wrong address");
    const std::string revived = ledger.submit("x");
    CHECK(ledger.run(revived, [&](pqxx::work& tx) {
        tx.exec("INSERT INTO effects VALUES (" + tx.quote(revived) + ")");
        CHECK(ledger.cancel(revived, "too early"));
        CHECK(ledger.revive(revived));
    }) == LedgerOutcome::fenced);
    CHECK(state(revived) == "pending");
    CHECK(effects(revived) == 0);
}

TEST_CASE_FIXTURE(Care, "jobs that do not run are cancelled too, and finished ones are not") {
    const std::string pending = ledger.submit("x");
    const std::string failed = ledger.submit("x");
    const std::string completed = ledger.submit("x");
    CHECK(ledger.run(failed, fail) == LedgerOutcome::failed);
    CHECK(ledger.run(completed, nothing) == LedgerOutcome::completed);
    CHECK(ledger.cancel(pending, "x"));
    CHECK(ledger.cancel(failed, "x"));
    CHECK_FALSE(ledger.cancel(completed, "x"));
    CHECK_FALSE(ledger.cancel("nobody", "x"));
    CHECK_THROWS_AS(ledger.cancel("", "x"), std::invalid_argument);
    CHECK(state(pending) == "dead");
    CHECK(state(failed) == "dead");
    CHECK(state(completed) == "completed");
}

TEST_CASE_FIXTURE(Care, "a cancellation that meets the COMMIT of the run waits for it") {
    const std::string id = ledger.submit("x");
    pqxx::connection other(database.conninfo());
    std::optional<pqxx::work> committing;
    CHECK(text("SELECT verdict FROM orizuru_ledger_claim('" + id + "', 'w/1', 60000)") ==
          "claimed");
    committing.emplace(other);
    committing->exec("UPDATE orizuru_ledger SET state = 'completed' WHERE id = '" + id + "'");
    bool cancelled = true;
    std::jthread cancelling([&] { cancelled = ledger.cancel(id, "x"); });
    CHECK(eventually([&] {
        return number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == 1;
    }));
    committing->commit();
    cancelling.join();
    CHECK_FALSE(cancelled);
    CHECK(state(id) == "completed");
}

TEST_CASE_FIXTURE(Care,
                  "a run that has lost its lease to another is told, the one beside it is not") {
    Ledger<std::string> quick(database, "q", with_lease(300ms));
    const std::string beside = quick.submit("y");
    const std::string id = quick.submit("x");
    const auto outcome = quick.run(beside, [&](pqxx::work&, const std::stop_token& kept) {
        CHECK(quick.run(id, [&](pqxx::work&, const std::stop_token& token) {
            sql("UPDATE orizuru_ledger SET state = 'pending' WHERE id = '" + id + "'");
            CHECK(eventually([&] { return token.stop_requested(); }));
        }) == LedgerOutcome::fenced);
        CHECK_FALSE(kept.stop_requested());
    });
    CHECK(outcome == LedgerOutcome::completed);
}

TEST_CASE_FIXTURE(Care, "only a dead job can be revived") {
    const std::string id = ledger.submit("x");
    CHECK_FALSE(ledger.revive(id)); // pending
    CHECK(ledger.run(id, [&](pqxx::work&) { CHECK_FALSE(ledger.revive(id)); }) ==
          LedgerOutcome::completed);
    CHECK_FALSE(ledger.revive(id)); // completed
    const std::string failed = ledger.submit("x");
    CHECK(ledger.run(failed, fail) == LedgerOutcome::failed);
    CHECK_FALSE(ledger.revive(failed));
    CHECK(state(failed) == "failed");
    CHECK_FALSE(ledger.revive("nobody"));
    CHECK_FALSE(ledger.revive("\xff"));
    CHECK_THROWS_AS(ledger.revive(""), std::invalid_argument);
    CHECK(changes(id) == ">pending pending>running running>completed");
}

TEST_CASE_FIXTURE(Care, "a revived job may fail for as long as a new one") {
    LedgerOptions patient = options();
    patient.retry.max_attempts = 100;
    patient.retry.retry_for = 1h;
    Ledger<std::string> limited(database, "q", patient);
    const std::string id = limited.submit("x");
    CHECK(limited.run(id, fail) == LedgerOutcome::failed);
    sql("UPDATE orizuru_ledger_history SET at = at - interval '2 h'");
    CHECK(limited.run(id, fail) == LedgerOutcome::dead);
    CHECK(limited.revive(id));
    CHECK(limited.run(id, fail) == LedgerOutcome::failed);
    CHECK(limited.run(id, fail) == LedgerOutcome::failed);
}

TEST_CASE_FIXTURE(Care,
                  "a run that has lost its job to death completes nothing after the revival") {
    const std::string id = ledger.submit("x");
    LedgerReconciler reconciler(database, uri, reconciling());
    sql("UPDATE orizuru_ledger SET state = 'pending'"); // by hand, and no change
    for (int i = 0; i < 2; ++i) {
        CHECK(ledger.run(id, fail) == LedgerOutcome::failed);
    }
    const auto late = [&](pqxx::work& tx) {
        effect(id)(tx);
        end_lease(id);
        CHECK(reconciler.reconcile().died == 1);
        CHECK(ledger.revive(id));
    };
    CHECK(ledger.run(id, late) == LedgerOutcome::fenced);
    CHECK(effects(id) == 0);
    CHECK(state(id) == "pending");
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(handle_all(ledger) == std::vector{LedgerOutcome::completed});
    CHECK(effects(id) == 1);
}

TEST_CASE_FIXTURE(Care, "a purge leaves a job alone that is revived meanwhile, with its history") {
    const std::string id = dead_job();
    const std::string other = dead_job();
    std::uint64_t purged = 0;
    {
        pqxx::work reviving(postgres_connection);
        reviving.exec("UPDATE orizuru_ledger SET state = 'pending' WHERE id = '" + id + "'");
        std::atomic<bool> over = false; // it waits for so long only
        std::jthread purging([&] {
            purged = ledger.purge(0s);
            over = true;
        });
        pqxx::connection watching(database.conninfo());
        pqxx::nontransaction watch(watching);
        CHECK(eventually(
            [&] { return over || !watch.exec("SELECT FROM pg_locks WHERE NOT granted").empty(); }));
        reviving.commit();
    }
    CHECK(purged == 1);
    CHECK(changes(id) == ">pending pending>dead dead>pending");
    CHECK_FALSE(ledger.find(other));
    CHECK(ledger.history(other).empty());
}

// The COMMIT that waits for a standby that does not exist has happened; its connection is ended
// before it is answered.
TEST_CASE("a change that happened and was not answered is recognised as one's own") {
    PostgresServer server({"synchronous_standby_names=nobody", "synchronous_commit=local"});
    const Database database(server.conninfo());
    Schema(database).apply();
    Ledger<std::string> ledger(database, "q");
    const std::string id = ledger.submit("x");
    Ledger<std::string> waiting(
        Database(database.conninfo() + " options='-c synchronous_commit=on'"), "q");
    pqxx::connection watching(database.conninfo());
    const auto cut_once = [&] {
        return std::jthread([&] {
            pqxx::nontransaction watch(watching);
            static_cast<void>(eventually([&] {
                return !watch
                            .exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                  "WHERE wait_event = 'SyncRep'")
                            .empty();
            }));
        });
    };
    {
        const std::jthread cutting = cut_once();
        CHECK(waiting.give_up(id, "no"));
    }
    {
        const std::jthread cutting = cut_once();
        CHECK(waiting.revive(id));
    }
    CHECK(ledger.history(id).size() == 3);
    CHECK_FALSE(waiting.revive(id));
}

TEST_CASE_FIXTURE(Care,
                  "the jobs of a state are listed in the order of their submission, in pages") {
    const std::string pending = ledger.submit("x");
    std::vector<std::string> dead;
    for (int i = 0; i < 5; ++i) {
        dead.push_back(dead_job());
    }
    const std::string completed = ledger.submit("x");
    CHECK(ledger.run(completed, nothing) == LedgerOutcome::completed);
    const std::string failed = ledger.submit("x");
    CHECK(ledger.run(failed, fail) == LedgerOutcome::failed);
    Ledger<std::string>(database, "other", options()).submit("x");
    std::ranges::sort(dead); // of one millisecond the order is by chance

    CHECK(listed(LedgerState::dead) == dead);
    CHECK(listed(LedgerState::dead, 2) == std::vector{dead[0], dead[1]});
    CHECK(listed(LedgerState::dead, 2, dead[1]) == std::vector{dead[2], dead[3]});
    CHECK(listed(LedgerState::dead, 2, dead[4]).empty());
    CHECK(listed(LedgerState::pending) == std::vector{pending});
    CHECK(listed(LedgerState::completed) == std::vector{completed});
    CHECK(listed(LedgerState::failed) == std::vector{failed});
    CHECK(ledger.run(pending, [&](pqxx::work&) {
        CHECK(listed(LedgerState::running) == std::vector{pending});
    }) == LedgerOutcome::completed);
    CHECK(ledger.list(LedgerState::dead, 1)[0].error == "nobody needs it");

    CHECK_THROWS_AS(static_cast<void>(ledger.list(LedgerState::dead, 0)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(ledger.list(LedgerState::dead, 10'001)),
                    std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(ledger.list(LedgerState::dead, 1, "\xff")),
                    std::invalid_argument);
}

TEST_CASE_FIXTURE(Care,
                  "the jobs of each state are counted, and the pending one is named that waits "
                  "longest") {
    CHECK_FALSE(ledger.count().oldest);
    const std::string first = ledger.submit("x");
    ledger.submit("x");
    dead_job();
    const std::string failed = ledger.submit("x");
    CHECK(ledger.run(failed, fail) == LedgerOutcome::failed);
    const std::string running = ledger.submit("x");
    Ledger<std::string>(database, "other", options()).submit("x");
    CHECK(ledger.run(running, [&](pqxx::work&) {
        const LedgerCounts counts = ledger.count();
        CHECK(counts.queue == "q");
        CHECK(counts.pending == 2);
        CHECK(counts.running == 1);
        CHECK(counts.failed == 1);
        CHECK(counts.dead == 1);
        CHECK(counts.oldest == ledger.find(first)->changed_at);
        CHECK(counts.now >= *counts.oldest);
    }) == LedgerOutcome::completed);
    CHECK(ledger.count().running == 0);
}

TEST_CASE_FIXTURE(Care,
                  "lists and counts of what has not ended, and of the dead, read no completed "
                  "jobs") {
    sql("INSERT INTO orizuru_ledger (id, queue, payload, max_attempts, state, attempt, "
        "finished_at) "
        "SELECT '00' || n, 'q', '', 3, 'completed', 1, clock_timestamp() "
        "FROM generate_series(1, 20000) AS n");
    // So many that the order of ids looks like the quickest way to the first of them.
    sql("INSERT INTO orizuru_ledger (id, queue, payload, max_attempts) "
        "SELECT 'p' || n, 'q', '', 3 FROM generate_series(1, 4999) AS n");
    const std::string pending = ledger.submit("x");
    const std::string dead = dead_job();
    sql("ANALYZE orizuru_ledger");
    const auto read = [this] {
        sql("SELECT pg_stat_force_next_flush()");
        return number("SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables "
                      "WHERE relname = 'orizuru_ledger'");
    };
    const auto sessions = [this] {
        return number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                      "AND backend_type = 'client backend'");
    };
    // The counts of a session are visible for certain only when it has ended, so `look` has its
    // own.
    const auto read_by = [&](auto look) {
        REQUIRE(eventually([&] { return sessions() == 2; })); // this case's and its ledger's
        const int before = read();
        {
            Ledger<std::string> other(Database(database.conninfo()), "q", options());
            look(other);
            CHECK(sessions() == 3);
        }
        REQUIRE(eventually([&] { return sessions() == 2; }));
        return read() - before;
    };
    CHECK(read_by([&](Ledger<std::string>& other) {
              CHECK(other.count().pending == 5000);
              for (const LedgerState state : {LedgerState::pending, LedgerState::running,
                                              LedgerState::failed, LedgerState::dead}) {
                  CHECK(other.list(state).size() == (state == LedgerState::pending ? 100
                                                     : state == LedgerState::dead  ? 1
                                                                                   : 0));
              }
          }) < 15'000);
    CHECK(read_by([](Ledger<std::string>& other) {
              CHECK(other.list(LedgerState::completed, 100).size() == 100);
          }) < 1000);
}

} // namespace ledger_care_test
