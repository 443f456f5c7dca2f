// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Many jobs of a ledger in one transaction.

#include "integration/postgres/ledger_fixture.hpp"
#include "integration/postgres/postgres_proxy.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/worker.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ledger_batches_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

using Ids = std::vector<std::string>;
using Outcomes = std::vector<LedgerOutcome>;
using Claimed = std::span<const std::size_t>;

constexpr auto completed = LedgerOutcome::completed;
constexpr auto failed = LedgerOutcome::failed;
constexpr auto repeated = LedgerOutcome::repeated;

struct Batches : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};
    std::atomic<int> calls{0};

    Ids submitted(int count) {
        return ledger.submit_all(Ids(static_cast<std::size_t>(count), "x"));
    }
    void insert(pqxx::work& tx, const Ids& ids, Claimed claimed) {
        ++calls;
        for (const std::size_t position : claimed) {
            effect(ids[position])(tx);
        }
    }
    Outcomes run(const Ids& ids) {
        return ledger.run_batch(ids,
                                [&](pqxx::work& tx, Claimed claimed) { insert(tx, ids, claimed); });
    }
    int done() { return number("SELECT count(*) FROM orizuru_ledger WHERE state = 'completed'"); }
};

TEST_CASE_FIXTURE(Batches, "a batch has its effects and its completions in one transaction") {
    Ids ids = submitted(4);
    std::swap(ids[0], ids[3]);
    std::string transaction;
    const Outcomes outcomes = ledger.run_batch(ids, [&](pqxx::work& tx, Claimed claimed) {
        CHECK(std::vector(claimed.begin(), claimed.end()) == std::vector<std::size_t>{0, 1, 2, 3});
        transaction = tx.exec("SELECT txid_current()")[0][0].as<std::string>();
        insert(tx, ids, claimed);
    });
    CHECK(outcomes == Outcomes(4, completed));
    for (const std::string& id : ids) {
        CHECK(effects(id) == 1);
        CHECK(changes(id) == ">pending pending>running running>completed");
    }
    for (const char* table : {"effects", "orizuru_ledger"}) {
        CHECK(number("SELECT count(*) FROM " + std::string(table) + " WHERE xmin::text = '" +
                     transaction + "'") == 4);
    }
}

TEST_CASE_FIXTURE(Batches, "what cannot run has its own outcome and holds up no other") {
    Ids ids = submitted(5);
    CHECK(ledger.run(ids[0], nothing) == completed);
    CHECK(ledger.give_up(ids[1], "not needed"));
    sql("UPDATE orizuru_ledger SET state = 'running', attempt = 1, token = 1, worker = 'another', "
        "due = now() + interval '1 minute' WHERE id = '" +
        ids[2] + "'");
    ids.insert(ids.end(), {ids[3], "none", std::string("\0", 1)});
    CHECK(run(ids) == Outcomes{repeated, repeated, LedgerOutcome::elsewhere, completed, completed,
                               repeated, LedgerOutcome::unknown, LedgerOutcome::unknown});
    CHECK(calls == 1);
    CHECK(number("SELECT count(*) FROM effects") == 2);
    CHECK(run(ids) == Outcomes{repeated, repeated, LedgerOutcome::elsewhere, repeated, repeated,
                               repeated, LedgerOutcome::unknown, LedgerOutcome::unknown});
    CHECK(calls == 1);
    CHECK(run({}).empty());
    CHECK_THROWS_AS(run({ids[0], ""}), std::invalid_argument);
}

TEST_CASE_FIXTURE(Batches, "of a job that fails nothing stays, and the others are completed") {
    const Ids ids = submitted(4);
    const Outcomes outcomes = ledger.run_batch(ids, [&](pqxx::work& tx, Claimed claimed) {
        insert(tx, ids, claimed);
        for (const std::size_t position : claimed) {
            if (position == 1) {
                throw std::runtime_error("no such account");
            }
            if (position == 2) {
                throw DoNotRetry("never");
            }
        }
    });
    CHECK(outcomes == Outcomes{completed, failed, LedgerOutcome::dead, completed});
    CHECK(effects(ids[0]) + effects(ids[3]) == 2);
    CHECK(effects(ids[1]) + effects(ids[2]) == 0);
    CHECK(ledger.find(ids[1])->error == "no such account");
    CHECK(ledger.find(ids[2])->error == "never");
    CHECK(ledger.find(ids[1])->attempt == 1); // one claim for both tries
    CHECK(calls == 5);
    CHECK(run({ids[0], ids[1]}) == Outcomes{repeated, completed});
}

TEST_CASE_FIXTURE(Batches, "an error of PostgreSQL's at COMMIT, or one swallowed, fails its job "
                           "alone") {
    const Ids ids = submitted(3);
    SUBCASE("at COMMIT") {
        sql("CREATE TABLE accounts (id text PRIMARY KEY); INSERT INTO accounts VALUES ('" + ids[0] +
            "'), ('" + ids[2] +
            "'); ALTER TABLE effects ADD FOREIGN KEY (job) REFERENCES accounts "
            "DEFERRABLE INITIALLY DEFERRED");
        CHECK(run(ids) == Outcomes{completed, failed, completed});
    }
    SUBCASE("swallowed") {
        CHECK(ledger.run_batch(ids, [&](pqxx::work& tx, Claimed claimed) {
            insert(tx, ids, claimed);
            try {
                if (std::ranges::find(claimed, 1U) != claimed.end()) {
                    tx.exec("SELECT 1 / 0");
                }
            } catch (const pqxx::sql_error&) { // NOLINT(bugprone-empty-catch)
            }
        }) == Outcomes{completed, failed, completed});
    }
    CHECK(effects(ids[0]) + effects(ids[2]) == 2);
    CHECK(effects(ids[1]) == 0);
}

TEST_CASE_FIXTURE(Batches, "a batch that has lost one of its leases completes the others alone") {
    const Ids ids = submitted(3);
    Ledger<std::string> other(database, "q", options());
    std::string left;
    const auto lose_one = [&] {
        end_lease(ids[1]);
        SUBCASE("to one who has completed the job") {
            CHECK(other.run(ids[1], effect(ids[1])) == completed);
            left = "completed";
        }
        SUBCASE("to one who runs it now") {
            sql("UPDATE orizuru_ledger SET token = token + 1, attempt = attempt + 1, worker = 'w', "
                "due = clock_timestamp() + interval '1 h' WHERE id = '" +
                ids[1] + "'");
            left = "running";
        }
    };
    bool lost = false;
    const Outcomes outcomes = ledger.run_batch(ids, [&](pqxx::work& tx, Claimed claimed) {
        insert(tx, ids, claimed);
        if (!std::exchange(lost, true)) {
            lose_one();
        }
    });
    CHECK(outcomes == Outcomes{completed, LedgerOutcome::fenced, completed});
    CHECK(state(ids[1]) == left);
    CHECK(effects(ids[0]) + effects(ids[2]) == 2);
    CHECK(effects(ids[1]) == (left == "completed" ? 1 : 0));
}

TEST_CASE_FIXTURE(Batches, "a job that another transaction has locked runs behind the others") {
    const Ids ids = submitted(3);
    pqxx::connection other(database.conninfo());
    pqxx::work holding(other);
    holding.exec("SELECT FROM orizuru_ledger WHERE id = '" + ids[0] + "' FOR UPDATE");
    auto running = std::async(std::launch::async, [&] { return run(ids); });
    CHECK(eventually([&] { return done() == 2; }));
    holding.abort();
    CHECK(running.get() == Outcomes(3, completed));
    CHECK(calls == 2);
}

TEST_CASE_FIXTURE(Batches, "the leases of a batch are renewed as long as it runs") {
    Ledger<std::string> brief(database, "q", with_lease(300ms));
    const Ids ids = submitted(2);
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(brief.run_batch(ids, [&](pqxx::work&, Claimed) {
        const auto lease = [&] {
            return number("SELECT (extract(epoch FROM min(due) - '2026-01-01') * 10)::int "
                          "FROM orizuru_ledger"); // tenths of a second
        };
        const auto first = lease();
        CHECK(eventually([&] { return lease() > first + 6; }));
        reconciler.reconcile();
    }) == Outcomes(2, completed));
    CHECK(count(LedgerEventKind::lease_ended) == 0);
}

TEST_CASE_FIXTURE(Batches, "a batch has its effects once, wherever the connection ends") {
    PostgresProxy way;
    const int rounds = cut_everywhere(
        way,
        [&] { return std::make_unique<Ledger<std::string>>(way.to(database), "q", options()); },
        [this](Ledger<std::string>& cutting) {
            const Ids ids = submitted(2);
            REQUIRE(cutting.run_batch(ids, [&](pqxx::work& tx, Claimed claimed) {
                insert(tx, ids, claimed);
            }) == Outcomes{completed, completed});
            for (const std::string& id : ids) {
                REQUIRE(effects(id) == 1);
                REQUIRE(changes(id) == ">pending pending>running running>completed");
            }
        });
    CHECK(rounds > 20);
}

TEST_CASE_FIXTURE(Batches, "a claim that was not answered until its lease had ended is one's own") {
    PostgresProxy way;
    Ledger<std::string> slow(way.to(database, "connect_timeout=2"), "q", with_lease(100ms));
    way.cut_last(Relay::Direction::to_client, 0);
    way.proxy.then_cut_next_after(Relay::Direction::to_server, 0, Relay::Cut::silence);
    const Ids ids = submitted(2);
    CHECK(slow.run_batch(ids, [&](pqxx::work& tx, Claimed claimed) { insert(tx, ids, claimed); }) ==
          Outcomes(2, completed));
    CHECK(way.proxy.cuts() == 2);
    for (const std::string& id : ids) {
        CHECK(effects(id) == 1);
        CHECK(ledger.find(id)->attempt == 1);
    }
}

TEST_CASE_FIXTURE(Batches, "a claim that is committed after its connection was lost is one's own") {
    PostgresProxy way;
    LedgerOptions once = options();
    once.retry.max_attempts = 1;
    Ledger<std::string> cut(way.to(database), "q", once);
    const Ids ids = cut.submit_all(Ids{"x", "y"});
    // As a reconciler that falls asleep does, it holds up the claim's COMMIT.
    pqxx::connection other(database.conninfo());
    auto dozing = std::make_unique<pqxx::work>(other);
    dozing->exec("SELECT pg_advisory_xact_lock(hashtext('orizuru_ledger_sleep'))");
    const auto waits = [this](const std::string& event) {
        return eventually([&] {
            return number("SELECT count(*) FROM pg_stat_activity WHERE wait_event = '" + event +
                          "' AND datname = current_database()") == 1;
        });
    };
    auto running = std::async(std::launch::async, [&] {
        return cut.run_batch(ids,
                             [&](pqxx::work& tx, Claimed claimed) { insert(tx, ids, claimed); });
    });
    CHECK(waits("advisory"));
    way.proxy.lose_clients();
    CHECK(waits("transactionid")); // of the first claim, by the second
    dozing.reset();
    CHECK(running.get() == Outcomes(2, completed));
    for (const std::string& id : ids) {
        CHECK(effects(id) == 1);
        CHECK(changes(id) == ">pending pending>running running>completed");
    }
}

TEST_CASE_FIXTURE(Batches,
                  "a job that ends the session, or meets a DatabaseError, leaves the others "
                  "alone") {
    const Ids ids = submitted(3);
    std::string what;
    SUBCASE("ends the session") {
        CHECK(ledger.run_batch(ids, [&](pqxx::work& tx, Claimed claimed) {
            insert(tx, ids, claimed);
            if (claimed.size() > 1) {
                tx.exec("SELECT pg_terminate_backend(pg_backend_pid())");
            }
        }) == Outcomes(3, completed));
        CHECK(state(ids[1]) == "completed");
    }
    SUBCASE("meets an error") {
        try {
            static_cast<void>(ledger.run_batch(ids, [&](pqxx::work& tx, Claimed claimed) {
                insert(tx, ids, claimed);
                if (std::ranges::find(claimed, 1U) != claimed.end()) {
                    throw DatabaseError("the audit's database is away");
                }
            }));
            FAIL("it must throw");
        } catch (const DatabaseError& error) {
            CHECK(std::string(error.what()) == "the audit's database is away");
        }
        CHECK(state(ids[1]) == "running");
        CHECK(effects(ids[1]) == 0);
    }
    for (const std::size_t position : {0U, 2U}) {
        CHECK(state(ids[position]) == "completed");
        CHECK(effects(ids[position]) == 1);
    }
}

TEST_CASE_FIXTURE(Batches, "an id that comes twice is run once, whatever comes of it") {
    const Ids two = submitted(2);
    const Ids ids{two[0], two[1], two[0], two[1]};
    CHECK(ledger.run_batch(ids, [&](pqxx::work& tx, Claimed claimed) {
        insert(tx, ids, claimed);
        if (claimed.front() == 0) {
            throw std::runtime_error("no");
        }
    }) == Outcomes{failed, completed, failed, repeated});
    CHECK(ledger.find(two[0])->attempt == 1);
    CHECK(effects(two[0]) == 0);
    CHECK(effects(two[1]) == 1);
}

TEST_CASE_FIXTURE(Batches, "jobs that a reconciler has locked run together behind it") {
    const Ids ids = submitted(5);
    pqxx::connection other(database.conninfo());
    pqxx::work step(other);
    step.exec("SELECT FROM orizuru_ledger FOR NO KEY UPDATE");
    auto running = std::async(std::launch::async, [&] { return run(ids); });
    CHECK(eventually([&] {
        return number("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'transactionid'") ==
               1;
    }));
    step.abort();
    CHECK(running.get() == Outcomes(5, completed));
    CHECK(calls == 2); // the one that waited, and four together
}

TEST_CASE_FIXTURE(Batches, "batches of the same jobs at once run each job once") {
    const Ids up = submitted(200);
    const Ids down(up.rbegin(), up.rend());
    std::vector<std::future<int>> all;
    for (const Ids* const ids : {&up, &down, &up, &down}) {
        all.push_back(std::async(std::launch::async, [this, ids] {
            int count = 0;
            for (auto at = ids->begin(); at != ids->end(); at += 20) {
                count += static_cast<int>(std::ranges::count(run(Ids(at, at + 20)), completed));
            }
            return count;
        }));
    }
    int sum = 0;
    for (auto& one : all) {
        sum += one.get();
    }
    CHECK(sum == 200);
    CHECK(number("SELECT count(*) FROM effects") == 200);
    CHECK(number("SELECT count(DISTINCT job) FROM effects") == 200);
}

TEST_CASE_FIXTURE(Batches, "a Worker's batches are processed, and what is unknown is buried") {
    const Ids ids = submitted(50);
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(reconciler.reconcile().sent == 50);
    redis.command({"RPOP", "q"});
    JobProducer<std::string>(uri, "q").push("stranger");
    std::mutex mutex;
    Outcomes outcomes;
    std::size_t most = 0;
    Worker worker(uri);
    const auto handler = [&](const JobBatch<std::string>& batch) {
        const Outcomes some = ledger.process_batch(batch, [&](pqxx::work& tx, auto claimed) {
            for (const JobContext<std::string>* job : claimed) {
                CHECK((*job)->payload == "x");
                effect(job->id())(tx);
            }
        });
        const std::lock_guard lock(mutex);
        outcomes.insert(outcomes.end(), some.begin(), some.end());
        most = std::max(most, batch.size());
    };
    worker.handle_batch<std::string>("q", handler, {.size = 20, .time = 100ms});
    Running running(worker);
    CHECK(eventually([&] { return done() == 49 && redis.llen("q") == 0; }));
    CHECK(running.stop() == 0);
    CHECK(most == 20);
    CHECK(outcomes.size() == 50);
    CHECK(std::ranges::count(outcomes, completed) == 49);
    CHECK(number("SELECT count(DISTINCT job) FROM effects") == 49);
    CHECK(redis.llen(dead) == 1);
}

} // namespace ledger_batches_test
