// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A reconciler when Redis, workers or other reconcilers are lost.

#include "integration/postgres/ledger_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/detail/postgres/ledger/step.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <atomic>
#include <future>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace ledger_reconciler_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

using Outcomes = std::vector<LedgerOutcome>;

struct Reconciling : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};

    std::vector<std::string> submit(int count) {
        std::vector<std::string> jobs;
        pqxx::work transaction(postgres_connection);
        for (int i = 0; i < count; ++i) {
            jobs.push_back(ledger.submit(transaction, std::to_string(i)));
        }
        transaction.commit();
        return jobs;
    }
    /// Ids of the jobs in the queue, the next to be served first.
    std::vector<std::string> queued() {
        Scratch scratch;
        std::vector<std::string> jobs;
        for (const std::string& message : waiting()) {
            jobs.push_back(Codec<Job<std::string>>::decode(message, scratch).id);
        }
        return jobs;
    }
    std::string mark() { return redis.command({"GET", "orizuru:{q}:ledger"}).text; }
    /// The first number of the mark.
    std::string epoch() { return mark().substr(0, mark().find(':')); }
    std::int64_t sendings() { return info("commandstats", "cmdstat_lpush:calls"); }
    int effects_in_all() { return number("SELECT count(*) FROM effects"); }
    int jobs_done_once() {
        return number("SELECT count(*) FROM (SELECT FROM effects GROUP BY job "
                      "HAVING count(*) = 1) AS once");
    }
};

TEST_CASE_FIXTURE(Reconciling,
                  "jobs are sent in the order in which they were submitted, in steps") {
    const auto jobs = submit(2500);
    const auto before = sendings();
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(reconciler.reconcile().sent == 2500);
    CHECK(queued() == jobs);
    CHECK(sendings() - before == 3);
}

TEST_CASE_FIXTURE(Reconciling, "a step sends no more than a mebibyte, except its last message") {
    for (int i = 0; i < 4; ++i) {
        ledger.submit(std::string(700'000, 'x'));
    }
    const auto before = sendings();
    CHECK(LedgerReconciler(database, uri, reconciling()).reconcile().sent == 4);
    CHECK(redis.llen("q") == 4);
    CHECK(sendings() - before == 2);
}

TEST_CASE_FIXTURE(Reconciling, "after a loss of Redis all that is unfinished comes again, and "
                               "nothing else") {
    LedgerReconciler reconciler(database, uri, reconciling());
    const auto jobs = submit(7);
    reconciler.reconcile();
    CHECK(ledger.run(jobs[0], effect(jobs[0])) == LedgerOutcome::completed);
    CHECK(ledger.run(jobs[1], fail) == LedgerOutcome::failed);
    CHECK(ledger.give_up(jobs[2], ""));
    LedgerOutcome interrupted{};
    CHECK(ledger.run(jobs[3], [&](pqxx::work& tx) {
        redis.flushall();
        CHECK(reconciler.reconcile().sent == 4);
        interrupted = ledger.run(jobs[3], effect(jobs[3]));
        effect(jobs[3])(tx);
    }) == LedgerOutcome::completed);
    CHECK(interrupted == LedgerOutcome::elsewhere);
    CHECK(queued() == std::vector<std::string>{jobs[4], jobs[5], jobs[6], jobs[1]});
    CHECK(count(LedgerEventKind::redis_lost) == 1);
    CHECK(handle_all(ledger) == Outcomes(4, LedgerOutcome::completed));
    CHECK(jobs_done_once() == 6);
    CHECK(effects_in_all() == 6);
    CHECK(reconciler.reconcile().sent == 0);
}

TEST_CASE_FIXTURE(Reconciling, "a new and empty Redis gets all unfinished jobs") {
    RedisServer own;
    LedgerReconciler reconciler(database, own.uri(), reconciling());
    submit(3);
    CHECK(reconciler.reconcile().sent == 3);
    own.restart();
    CHECK(reconciler.reconcile().sent == 3);
    CHECK(RedisClient(own.uri()).llen("q") == 3);
    own.restart();
    CHECK(reconciler.reconcile().sent == 3);
    CHECK(count(LedgerEventKind::redis_lost) == 2);
}

TEST_CASE_FIXTURE(Reconciling,
                  "messages that a Redis has forgotten by going back in time are sent again") {
    RedisServer own;
    LedgerReconciler reconciler(database, own.uri(), reconciling());
    const auto first = submit(2);
    reconciler.reconcile();
    RedisClient(own.uri()).command({"SAVE"});
    const auto second = submit(2);
    reconciler.reconcile();
    own.restart();
    CHECK(RedisClient(own.uri()).llen("q") == 2);
    // It is unknown which ones it has.
    CHECK(reconciler.reconcile().sent == 4);
    CHECK(RedisClient(own.uri()).llen("q") == 6);
    CHECK(count(LedgerEventKind::redis_lost) == 1);
    CHECK(reconciler.reconcile().sent == 0);
}

TEST_CASE_FIXTURE(Reconciling, "an old mark that comes back is not taken for a new one") {
    LedgerReconciler reconciler(database, uri, reconciling());
    submit(1);
    reconciler.reconcile();
    const std::string old = mark();
    for (int loss = 1; loss <= 3; ++loss) {
        redis.flushall();
        redis.command({"SET", "orizuru:{q}:ledger", old});
        CHECK(reconciler.reconcile().sent == (loss == 1 ? 0 : 1));
        redis.command({"DEL", "q", "orizuru:{q}:ledger"});
        CHECK(reconciler.reconcile().sent == 1);
        CHECK(mark() != old);
    }
    redis.command({"SET", "orizuru:{q}:ledger", "99:7"});
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(epoch() == "100");
    redis.command({"SET", "orizuru:{q}:ledger", "no mark"});
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(epoch() == "101");
}

TEST_CASE_FIXTURE(Reconciling, "lost messages are sent before new ones") {
    LedgerReconciler reconciler(database, uri, reconciling());
    auto jobs = submit(2);
    reconciler.reconcile();
    redis.flushall();
    const auto later = submit(2);
    jobs.insert(jobs.end(), later.begin(), later.end());
    CHECK(reconciler.reconcile().sent == 4);
    CHECK(queued() == jobs);
}

TEST_CASE_FIXTURE(Reconciling, "one that dies between its sending and the COMMIT is followed by "
                               "one that sends again") {
    LedgerReconciler reconciler(database, uri, reconciling());
    const auto before = submit(2);
    reconciler.reconcile();
    sql("CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;"
        "CREATE TRIGGER die BEFORE UPDATE ON orizuru_ledger_queue FOR EACH ROW "
        "EXECUTE FUNCTION die()");
    const auto jobs = submit(2);
    CHECK_THROWS_AS(reconciler.reconcile(), DatabaseError);
    CHECK(epoch() == "2");
    CHECK(redis.llen("q") == 4);
    sql("DROP TRIGGER die ON orizuru_ledger_queue");

    LedgerReconciler next(database, uri, reconciling());
    CHECK(next.reconcile().sent == 2);
    CHECK(epoch() == "2");
    CHECK(redis.llen("q") == 6);
    CHECK(count(LedgerEventKind::redis_lost) == 0);
    const Outcomes outcomes = handle_all(ledger);
    CHECK(std::ranges::count(outcomes, LedgerOutcome::completed) == 4);
    CHECK(std::ranges::count(outcomes, LedgerOutcome::repeated) == 2);
    CHECK(effects_in_all() == 4);
}

TEST_CASE_FIXTURE(Reconciling, "several reconcilers at once send each job once") {
    const auto jobs = submit(6000);
    std::vector<std::future<std::uint64_t>> sent;
    for (int i = 0; i < 3; ++i) {
        sent.push_back(std::async(std::launch::async, [this] {
            LedgerReconciler reconciler(database, uri, {.sweep = 24h});
            std::uint64_t own = 0;
            for (int pass = 0; pass < 20; ++pass) {
                own += reconciler.reconcile().sent;
            }
            return own;
        }));
    }
    std::uint64_t all = 0;
    for (auto& one : sent) {
        all += one.get();
    }
    CHECK(all == 6000);
    CHECK(queued() == jobs);
}

TEST_CASE_FIXTURE(Reconciling, "a queue that another reconciler has locked is passed over") {
    submit(1);
    pqxx::work other(postgres_connection);
    other.exec("SELECT FROM orizuru_ledger_queue FOR UPDATE");
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(reconciler.reconcile().sent == 0);
    other.abort();
    CHECK(reconciler.reconcile().sent == 1);
}

TEST_CASE_FIXTURE(Reconciling, "a transaction that stays open with a submit delays no other") {
    Ledger<std::string> other(database, "other", options());
    const std::string job = other.submit("x");
    auto open = std::make_unique<pqxx::work>(postgres_connection);
    open->exec("SET CONSTRAINTS ALL IMMEDIATE");
    ledger.submit(*open, "y");
    LedgerReconciler reconciler(database, uri, reconciling());
    auto sent = std::async(std::launch::async, [&] { return reconciler.reconcile().sent; });
    const bool at_once = sent.wait_for(patience) == std::future_status::ready;
    CHECK(at_once);
    {
        const std::jthread thread([&](const std::stop_token& token) {
            LedgerReconciler(database, uri, reconciling()).run(token);
        });
        auto ran = std::async(std::launch::async, [&] { return other.run(job, nothing); });
        CHECK(ran.wait_for(patience) == std::future_status::ready);
        open->commit();
        open.reset();
        CHECK(ran.get() == LedgerOutcome::completed);
        CHECK(sent.get() == 1);
        CHECK(eventually([&] { return redis.llen("q") == 1; }));
    }
}

TEST_CASE_FIXTURE(Reconciling, "a queue that Redis refuses does not hold up the others") {
    Ledger<std::string> other(database, "a", options());
    redis.command({"SET", "a", "no list"});
    other.submit("x");
    submit(1);
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(contains(message_of<ReplyError>([&] { reconciler.reconcile(); }), "WRONGTYPE"));
    CHECK(redis.llen("q") == 1);
    redis.del("a");
    CHECK(reconciler.reconcile().sent == 1);
}

TEST_CASE_FIXTURE(Reconciling, "a queue that fails in any way does not delay the others") {
    RedisServer own({"--client-query-buffer-limit", "1mb"});
    Ledger<std::string> large(database, "a", options());
    Ledger<std::string> teased(database, "b", options());
    large.submit(std::string(3 << 20, 'x'));
    teased.submit("x");
    submit(1);
    sql("CREATE FUNCTION tease() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'no'; END $$;"
        "CREATE TRIGGER tease BEFORE UPDATE ON orizuru_ledger FOR EACH ROW "
        "WHEN (NEW.queue = 'b') EXECUTE FUNCTION tease()");
    sql("INSERT INTO orizuru_ledger_queue (name) VALUES ('')");
    LedgerReconciler reconciler(database, own.uri(), reconciling());
    CHECK_THROWS_AS(reconciler.reconcile(), std::invalid_argument);
    CHECK(RedisClient(own.uri()).llen("q") == 1);
    sql("DELETE FROM orizuru_ledger_queue WHERE name = ''");
    CHECK_THROWS_AS(reconciler.reconcile(), ConnectionError);
    sql("UPDATE orizuru_ledger SET state = 'dead' WHERE queue = 'a'");
    submit(1);
    CHECK_THROWS_AS(reconciler.reconcile(), DatabaseError);
    CHECK(RedisClient(own.uri()).llen("q") == 2);
}

TEST_CASE_FIXTURE(Reconciling, "a Redis that drops the mark after each write does not keep a pass "
                               "for ever") {
    submit(2500);
    LedgerReconciler reconciler(database, uri, reconciling());
    std::atomic<bool> dropping{true};
    std::jthread thread([&] {
        RedisClient dropper(uri);
        while (dropping) {
            dropper.del("orizuru:{q}:ledger");
        }
    });
    auto pass = std::async(std::launch::async, [&] { return reconciler.reconcile(); });
    CHECK(pass.wait_for(patience) == std::future_status::ready);
    dropping = false;
    thread.join();
    pass.wait();
    redis.flushall();
    CHECK(reconciler.reconcile().sent == 2500);
}

// A Redis that answers late stands for a process that is frozen in the middle of its step.
TEST_CASE_FIXTURE(Reconciling, "a reconciler that is frozen in its step loses the queue") {
    RedisServer own;
    submit(1);
    Connection stopped(own.uri());
    own.pause();
    auto frozen = std::async(std::launch::async, [&] {
        pqxx::connection connection(database.conninfo());
        const detail::LedgerStepper stepper({"orizuru_", "frozen", 1s, 24h});
        return message_of<pqxx::broken_connection>(
            [&] { static_cast<void>(stepper.step(connection, stopped, "q")); });
    });
    CHECK(eventually([&] {
        return number("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' "
                      "AND query LIKE '%ledger_queue%' AND datname = current_database()") == 1;
    }));
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(eventually([&] { return reconciler.reconcile().sent == 1; }));
    own.resume();
    frozen.wait();
}

TEST_CASE_FIXTURE(Reconciling,
                  "without Redis or PostgreSQL a pass throws, and the next one works") {
    RedisServer own;
    PostgresServer database_server;
    const Database own_database(database_server.conninfo(), {.patience = 0ms});
    Schema(own_database).apply();
    Ledger<std::string> own_ledger(own_database, "q", options());
    LedgerReconciler reconciler(own_database, own.uri(), reconciling());
    own_ledger.submit("x");
    own.kill();
    CHECK_THROWS_AS(reconciler.reconcile(), ConnectionError);
    own.restart();
    database_server.kill();
    CHECK_THROWS_AS(reconciler.reconcile(), DatabaseError);
    CHECK_THROWS_AS(own_ledger.submit("y"), DatabaseError);
    database_server.restart();
    CHECK(reconciler.reconcile().sent == 1);
    own_ledger.submit("y");
    CHECK(reconciler.reconcile().sent == 1);
}

TEST_CASE_FIXTURE(Reconciling, "impossible options are refused") {
    CHECK_THROWS_AS(LedgerReconciler(database, uri, {.sweep = 99ms}), std::invalid_argument);
    CHECK_THROWS_AS(LedgerReconciler(database, uri, {.redis_check = 9ms}), std::invalid_argument);
    CHECK_THROWS_AS(LedgerReconciler(database, uri, {.redis_check = 25h}), std::invalid_argument);
    CHECK_THROWS_AS(LedgerReconciler(database, uri, {.retry = {.max_attempts = 0}}),
                    std::invalid_argument);
    CHECK_THROWS_AS(LedgerReconciler(database, uri, {.retry = {.retry_queue = "r"}}),
                    std::invalid_argument);
}

TEST_CASE_FIXTURE(Reconciling, "a locked job delays neither its queue nor another one") {
    const auto jobs = submit(2);
    Ledger<std::string> other(database, "other", options());
    other.submit("x");
    pqxx::connection connection(database.conninfo());
    pqxx::work holder(connection);
    holder.exec("SELECT FROM orizuru_ledger WHERE id = '" + jobs[0] + "' FOR UPDATE");
    LedgerReconciler reconciler(Database(database.conninfo() + " options='-c lock_timeout=5000'"),
                                uri, reconciling());
    CHECK(reconciler.reconcile().sent == 2);
    CHECK(queued() == std::vector{jobs[1]});
    CHECK(redis.llen("other") == 1);
    holder.abort();
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(reconciler.reconcile().sent == 0);
}

// A primary that got a sending that was rolled back, and returns after another Redis got more.
TEST_CASE_FIXTURE(Reconciling, "a sending that was rolled back is not taken for the next one") {
    RedisServer primary;
    RedisServer replica;
    RedisClient on_replica(replica.uri());
    LedgerReconciler before(database, primary.uri(), reconciling());
    submit(1);
    CHECK(before.reconcile().sent == 1);
    on_replica.set("orizuru:{q}:ledger",
                   RedisClient(primary.uri()).command({"GET", "orizuru:{q}:ledger"}).text);
    sql("CREATE FUNCTION tease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;"
        "CREATE TRIGGER tease BEFORE UPDATE OF sequence ON orizuru_ledger_queue FOR EACH ROW "
        "EXECUTE FUNCTION tease()");
    submit(1);
    CHECK_THROWS_AS(before.reconcile(), DatabaseError);
    CHECK(RedisClient(primary.uri()).llen("q") == 2);
    sql("DROP TRIGGER tease ON orizuru_ledger_queue");
    submit(1);
    CHECK(LedgerReconciler(database, replica.uri(), reconciling()).reconcile().sent == 2);
    CHECK(LedgerReconciler(database, primary.uri(), reconciling()).reconcile().sent == 3);
    CHECK(count(LedgerEventKind::redis_lost) == 1);
}

TEST_CASE_FIXTURE(Reconciling, "a queue whose row is gone is forgotten, whatever Redis has of it") {
    const std::jthread thread([this](const std::stop_token& token) {
        LedgerReconciler(database, uri, reconciling()).run(token);
    });
    submit(1);
    REQUIRE(eventually([&] { return redis.llen("q") == 1; }));
    CHECK(handle_all(ledger) == Outcomes{LedgerOutcome::completed});
    sql("DELETE FROM orizuru_ledger_queue");
    redis.del("orizuru:{q}:ledger");
    const auto looks = [this] {
        return number("SELECT xact_commit FROM pg_stat_database "
                      "WHERE datname = current_database()");
    };
    std::this_thread::sleep_for(2s); // it checks Redis each second, and reports later
    const int before = looks();
    std::this_thread::sleep_for(2s);
    CHECK(looks() - before < 200);
}

TEST_CASE_FIXTURE(Reconciling, "a PostgreSQL that was promoted sends again what is pending") {
    PostgresServer standby;
    const Database own_database(standby.conninfo());
    Schema(own_database).apply();
    Ledger<std::string> own_ledger(own_database, "q", options());
    own_ledger.submit("x");
    const std::jthread thread([&](const std::stop_token& token) {
        LedgerReconciler(own_database, uri, reconciling()).run(token);
    });
    REQUIRE(eventually([&] { return redis.llen("q") == 1; }));
    redis.del("q"); // as if it had run and been acked, which the standby does not know
    standby.change_timeline();
    CHECK(eventually([&] { return redis.llen("q") == 1; }));
    CHECK(count(LedgerEventKind::postgres_replaced) == 1);
    CHECK(count(LedgerEventKind::redis_lost) == 0);
}

} // namespace ledger_reconciler_test
