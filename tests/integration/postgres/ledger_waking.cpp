// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A running reconciler: what wakes it, and when. It sweeps once a day here, so that nothing happens
// by chance.

#include "integration/postgres/ledger_fixture.hpp"
#include "support/redis_server.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/detail/postgres/sleep.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace ledger_waking_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct Waking : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};

    /// Runs until the returned thread is stopped or left.
    std::jthread running(const std::string& redis_uri, LedgerReconcilerOptions chosen,
                         const std::string& conninfo = {}) {
        return std::jthread([=, this](const std::stop_token& token) {
            LedgerReconciler reconciler(conninfo.empty() ? database : Database(conninfo), redis_uri,
                                        chosen);
            reconciler.run(token);
        });
    }
    std::jthread running() { return running(uri, reconciling()); }
    /// True when it listens and sleeps.
    bool asleep() {
        return eventually([this] {
            return number("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' "
                          "AND state = 'idle' AND datname = current_database()") > 0;
        });
    }
    std::string claim(const std::string& id, const std::string& who,
                      std::chrono::milliseconds lease) {
        return text("SELECT verdict FROM orizuru_ledger_claim('" + id + "', '" + who + "', " +
                    std::to_string(lease.count()) + ")");
    }
    // Nothing else would wake it for a day.
    bool arrives(std::int64_t messages) {
        return eventually([&] { return redis.llen("q") == messages; });
    }
    /// True when this many messages arrive in the queue, no sooner than `time` after `act`.
    template <class Act>
    bool arrives_after(std::chrono::milliseconds time, std::int64_t messages, Act act) {
        const auto begun = std::chrono::steady_clock::now();
        act();
        return arrives(messages) && std::chrono::steady_clock::now() - begun >= time;
    }
};

TEST_CASE_FIXTURE(Waking, "a sleeping reconciler sends committed jobs at once") {
    const auto thread = running();
    REQUIRE(asleep());
    ledger.submit("own transaction");
    CHECK(arrives(1));
    pqxx::work transaction(postgres_connection);
    ledger.submit(transaction, "the user's");
    CHECK_FALSE(eventually([&] { return redis.llen("q") == 2; }, 200ms));
    transaction.commit();
    CHECK(arrives(2));
}

TEST_CASE_FIXTURE(Waking, "a sleeping reconciler is woken by serializable transactions too") {
    const Database strict(database.conninfo() +
                          " options='-c default_transaction_isolation=serializable'");
    const auto thread = running(uri, reconciling(), strict.conninfo());
    REQUIRE(asleep());
    pqxx::connection connection(strict.conninfo());
    pqxx::work submitting(connection);
    const std::string id = ledger.submit(submitting, "x");
    submitting.commit();
    CHECK(arrives(1));
    REQUIRE(claim(id, "w/1", 1h) == "claimed");
    pqxx::work giving_back(connection);
    giving_back.exec("UPDATE orizuru_ledger SET state = 'pending' WHERE id = '" + id + "'");
    giving_back.commit();
    CHECK(arrives(2));
}

TEST_CASE_FIXTURE(Waking, "a job that has failed comes again when it is due") {
    LedgerOptions later = options();
    later.retry.backoff = backoff::fixed(500ms);
    Ledger<std::string> patient(database, "q", later);
    const auto thread = running();
    const std::string id = patient.submit("x");
    REQUIRE(arrives(1));
    CHECK(arrives_after(500ms, 2, [&] { CHECK(patient.run(id, fail) == LedgerOutcome::failed); }));
}

TEST_CASE_FIXTURE(Waking, "the lease that ends first wakes it, whichever was claimed first") {
    const auto thread = running();
    const std::string slow = ledger.submit("slow");
    const std::string quick = ledger.submit("quick");
    REQUIRE(arrives(2));
    CHECK(claim(slow, "w/1", 1h) == "claimed");
    CHECK(arrives_after(300ms, 3, [&] { CHECK(claim(quick, "w/2", 300ms) == "claimed"); }));
    CHECK(state(slow) == "running");
}

TEST_CASE_FIXTURE(Waking, "an emptied Redis has all messages again within a second or so") {
    const auto thread = running();
    ledger.submit("a");
    ledger.submit("b");
    REQUIRE(arrives(2));
    redis.flushall();
    CHECK(arrives(2));
}

TEST_CASE_FIXTURE(Waking, "after an outage of Redis or PostgreSQL it goes on") {
    RedisServer own;
    PostgresServer database_server;
    const Database own_database(database_server.conninfo());
    Schema(own_database).apply();
    Ledger<std::string> own_ledger(own_database, "q", options());
    const auto thread = running(own.uri(), reconciling(), database_server.conninfo());
    // A sending that an outage leaves in doubt is repeated.
    const auto sent = [&](std::size_t jobs) {
        return eventually([&] {
            const auto messages = RedisClient(own.uri()).lrange("q");
            return std::set(messages.begin(), messages.end()).size() == jobs;
        });
    };
    own_ledger.submit("a");
    CHECK(sent(1));
    own.restart();
    CHECK(sent(1));
    database_server.restart();
    own_ledger.submit("b");
    CHECK(sent(2));
    own.kill();
    own_ledger.submit("c");
    CHECK(eventually([&] { return count(LedgerEventKind::failed) > 0; }));
    own.restart();
    CHECK(sent(3));
}

TEST_CASE_FIXTURE(Waking, "a queue that Redis refuses does not hold up the one beside it") {
    Ledger<std::string> other(database, "a", options());
    redis.command({"SET", "a", "no list"});
    const auto thread = running();
    other.submit("x");
    REQUIRE(eventually([&] { return count(LedgerEventKind::failed) > 0; }));
    ledger.submit("y");
    CHECK(arrives(1));
    redis.del("a");
    CHECK(eventually([&] { return redis.llen("a") == 1; }));
}

TEST_CASE_FIXTURE(Waking, "neither does one with a message that Redis does not take, or that "
                          "PostgreSQL refuses") {
    RedisServer own({"--client-query-buffer-limit", "1mb"});
    Ledger<std::string> large(database, "a", options());
    Ledger<std::string> teased(database, "b", options());
    large.submit(std::string(3 << 20, 'x'));
    teased.submit("x");
    sql("CREATE FUNCTION tease() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'no'; END $$;"
        "CREATE TRIGGER tease BEFORE UPDATE ON orizuru_ledger FOR EACH ROW "
        "WHEN (NEW.queue = 'b') EXECUTE FUNCTION tease()");
    const auto thread = running(own.uri(), reconciling());
    const auto failed = [this](const std::string& queue) {
        const std::lock_guard lock(told_mutex);
        return std::ranges::any_of(told, [&](const LedgerTold& one) { return one.queue == queue; });
    };
    CHECK(eventually([&] { return failed("a") && failed("b"); }));
    ledger.submit("y");
    CHECK(eventually([&] { return RedisClient(own.uri()).llen("q") == 1; }));
    sql("DROP TRIGGER tease ON orizuru_ledger");
    CHECK(eventually([&] {
        return number("SELECT count(*) FROM orizuru_ledger WHERE queue = 'b' AND sent_epoch > 0") ==
               1;
    }));
}

TEST_CASE_FIXTURE(Waking, "a queue that another reconciler has locked does not keep it busy") {
    pqxx::connection connection(database.conninfo());
    pqxx::work other(connection);
    other.exec("SELECT FROM orizuru_ledger_queue FOR UPDATE");
    const auto transactions = [this] {
        return number("SELECT xact_commit + xact_rollback FROM pg_stat_database "
                      "WHERE datname = current_database()");
    };
    const auto thread = running();
    ledger.submit("x");
    REQUIRE(asleep());
    std::this_thread::sleep_for(3s);
    const int before = transactions();
    std::this_thread::sleep_for(4s);
    CHECK(transactions() - before < 400); // by an order of magnitude, however late all is
    other.abort();
    CHECK(arrives(1));
}

TEST_CASE_FIXTURE(Waking, "one that is awake is not taken for dead, whichever second it is") {
    detail::Sleep other("orizuru_", "ledger");
    for (const std::string second : {"| 1", "& ~1"}) {
        sql("SELECT setval('orizuru_ledger_sleep', extract(epoch FROM now())::bigint " + second +
            ")");
        CHECK_FALSE(other.lapsed(postgres_connection));
        CHECK_FALSE(other.lapsed(postgres_connection));
    }
    sql("SELECT orizuru_doze('ledger', 60000)");
    CHECK_FALSE(other.lapsed(postgres_connection));
    CHECK(other.lapsed(postgres_connection));
}

TEST_CASE_FIXTURE(Waking, "one that stops leaves nobody to rely on it") {
    {
        const auto thread = running();
        REQUIRE(asleep());
    }
    CHECK(number("SELECT (last_value = 1)::int FROM orizuru_ledger_sleep") == 1);
}

TEST_CASE_FIXTURE(Waking, "a stop ends the sleep") {
    auto thread = running();
    REQUIRE(asleep());
    CHECK(time_of([&] {
              thread.request_stop();
              thread.join();
          }) < 5s);
}

TEST_CASE_FIXTURE(
    Waking, "of 200 leases that end none is slept through, and half are noticed within a second") {
    const auto thread = running();
    std::vector<std::string> jobs;
    for (int i = 0; i < 200; ++i) {
        jobs.push_back(ledger.submit("x"));
    }
    REQUIRE(arrives(200));
    redis.del("q");
    std::map<std::string, JobTime> ended;
    std::mt19937 random(4711);
    std::uniform_int_distribution<int> lease(1000, 5000);
    for (const std::string& id : jobs) {
        CHECK(claim(id, "w/1", std::chrono::milliseconds(lease(random))) == "claimed");
        ended[id] = ledger.find(id)->due.value();
    }
    std::vector<std::int64_t> delays;
    Scratch scratch;
    while (delays.size() < ended.size()) {
        const Answer popped = redis.command({"BRPOP", "q", "5"});
        REQUIRE(popped.elements.size() == 2);
        const auto job = Codec<Job<std::string>>::decode(popped.elements[1].text, scratch);
        delays.push_back((job_time() - ended.at(job.id)).count());
        CHECK(delays.back() >= 0);
    }
    std::ranges::sort(delays);
    MESSAGE("from a lease's end to the message in Redis: p50 "
            << delays[delays.size() / 2] << " ms, p99 " << delays[delays.size() * 99 / 100]
            << " ms, the longest " << delays.back() << " ms");
    CHECK(delays[delays.size() / 2] < 1000);
    CHECK(delays.back() < 10'000);
}

TEST_CASE_FIXTURE(Waking, "a commit sends a NOTIFY only to a reconciler that sleeps for too long") {
    pqxx::connection listener(database.conninfo());
    Listener heard(listener, "orizuru_ledger");
    sql("SELECT orizuru_wake('ledger')");
    const std::string id = ledger.submit("a");
    CHECK(claim(id, "w/1", 100ms) == "claimed");
    CHECK(heard.since() == 0);
    sql("SELECT orizuru_doze('ledger', 60000)");
    const std::string second = ledger.submit("b");
    CHECK(heard.since() == 1);
    CHECK(claim(second, "w/1", 1h) == "claimed");
    CHECK(heard.since() == 0);
    CHECK(claim(ledger.submit("c"), "w/1", 1s) == "claimed");
    CHECK(heard.since() == 2);
}

/// A job is submitted, and its trigger has seen that nobody sleeps; the transaction is still open.
struct Submitting {
    explicit Submitting(Waking& waking) : connection(waking.database.conninfo()) {
        waking.ledger.submit(transaction, "x");
        transaction.exec("SET CONSTRAINTS ALL IMMEDIATE");
    }

    pqxx::connection connection;
    pqxx::work transaction{connection};
};

TEST_CASE_FIXTURE(Waking, "a job that is committed while a reconciler falls asleep is sent") {
    Submitting open(*this);
    const auto thread = running();
    REQUIRE(someone_dozes_off());
    open.transaction.commit();
    CHECK(arrives(1));
}

TEST_CASE_FIXTURE(Waking, "a job whose commit a reconciler did not wait for is sent") {
    Submitting open(*this);
    const auto thread = running();
    REQUIRE(someone_dozes_off());
    REQUIRE(eventually([this] { return !dozes_off(); })); // it has given up, and looks
    std::this_thread::sleep_for(100ms);
    open.transaction.commit();
    // It looks again after half a second. One that slept would be missed after two.
    CHECK(time_of([this] { CHECK(arrives(1)); }) < 1200ms);
}

TEST_CASE_FIXTURE(Waking, "another reconciler takes over when the one that was awake has died") {
    const auto thread = running();
    const auto sleeps = [this] {
        return number("SELECT (last_value > extract(epoch FROM now()) * 1000)::int "
                      "FROM orizuru_ledger_sleep") == 1;
    };
    REQUIRE(eventually(sleeps));
    sql("SELECT orizuru_wake('ledger')"); // as one that dies at once
    const std::string id = ledger.submit("a");
    CHECK(arrives(1));
    REQUIRE(eventually(sleeps));
    sql("SELECT orizuru_doze('ledger', 1)"); // as one that dies asleep
    CHECK(claim(id, "w/1", 500ms) == "claimed");
    CHECK(arrives(2));
    REQUIRE(eventually(sleeps));
    sql("SELECT orizuru_wake('ledger')"); // as one that dies before it looks once more
    ledger.submit("b");
    sql("SELECT orizuru_doze('ledger', 3600000)");
    CHECK(arrives(3));
}

// The claim reads that a reconciler is awake; that one looks before the claim is committed.
TEST_CASE_FIXTURE(Waking, "no wake-up is lost between a claim and its COMMIT") {
    const auto thread = running();
    const std::string first = ledger.submit("first");
    const std::string second = ledger.submit("second");
    REQUIRE(arrives(2));
    CHECK(claim(first, "w/1", 400ms) == "claimed");
    pqxx::connection connection(database.conninfo());
    pqxx::work claiming(connection);
    claiming.exec("SET CONSTRAINTS ALL IMMEDIATE");
    claiming.exec("SELECT orizuru_ledger_claim('" + second + "', 'w/2', 1000)");
    sql("UPDATE orizuru_ledger SET state = 'completed' WHERE id = '" + first + "'");
    std::this_thread::sleep_for(600ms);
    claiming.commit();
    CHECK(arrives(3));
}

TEST_CASE_FIXTURE(Waking, "no lease's end is slept through while other jobs come and go") {
    const auto thread = running();
    std::atomic<int> late{0};
    std::atomic<int> ends{0};
    const auto work = [&](int number) {
        pqxx::connection connection(database.conninfo());
        Ledger<std::string> own(database, "q", with_lease(150ms));
        for (int i = 0; ends < 50 && late == 0; ++i) {
            const std::string id = own.submit("x");
            if (i % 8 != number) {
                own.run(id, nothing);
                continue;
            }
            pqxx::nontransaction(connection)
                .exec("SELECT orizuru_ledger_claim('" + id + "', 'w', 100)");
            ++ends;
            if (!eventually([&] { return own.find(id)->state == LedgerState::pending; })) {
                ++late;
                return;
            }
        }
    };
    {
        std::vector<std::jthread> workers;
        for (int number = 0; number < 4; ++number) {
            workers.emplace_back(work, number);
        }
    }
    CHECK(late == 0);
}

TEST_CASE_FIXTURE(Waking, "jobs that are submitted together wake it, for whichever queues") {
    Ledger<std::string> other(database, "other", options());
    const auto thread = running();
    for (int round = 1; round <= 5; ++round) {
        REQUIRE(asleep());
        pqxx::work transaction(postgres_connection);
        for (int i = 0; i < 100; ++i) {
            other.submit(transaction, "x");
            ledger.submit(transaction, "y");
        }
        transaction.commit();
        CHECK(arrives(round * 100));
        CHECK(eventually([&] { return redis.llen("other") == round * 100; }));
    }
}

TEST_CASE_FIXTURE(Waking, "a queue that Redis refuses does not keep it busy") {
    redis.lpush("orizuru:{q}:ledger", {"no mark"});
    LedgerReconcilerOptions chosen = reconciling();
    chosen.redis_check = 10ms;
    const auto thread = running(uri, chosen);
    ledger.submit("x");
    REQUIRE(eventually([&] { return count(LedgerEventKind::failed) > 3; }));
    const std::clock_t before = std::clock();
    std::this_thread::sleep_for(1s);
    CHECK(std::clock() - before < CLOCKS_PER_SEC / 3);
    redis.del("orizuru:{q}:ledger");
    CHECK(eventually([&] { return redis.llen("q") == 1; }));
}

TEST_CASE_FIXTURE(Waking, "a reconciler reads its notifications while it works off a backlog") {
    sql("CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END $$;"
        "CREATE TRIGGER slow BEFORE UPDATE OF sequence ON orizuru_ledger_queue FOR EACH ROW "
        "EXECUTE FUNCTION sleep()");
    constexpr std::int64_t jobs = 60;
    for (std::int64_t i = 0; i < jobs; ++i) {
        ledger.submit(std::string(1 << 20, 'x')); // one step for each
    }
    const auto thread = running();
    REQUIRE(eventually([&] { return redis.llen("q") > 0; }));
    notify("ledger", 200);
    CHECK(all_is_read());
    CHECK(redis.llen("q") < jobs);
}

TEST_CASE_FIXTURE(Waking, "a reconciler that was stopped listens no more") {
    LedgerReconciler reconciler(database, uri, reconciling());
    std::jthread running([&](const std::stop_token& token) { reconciler.run(token); });
    REQUIRE(asleep());
    running.request_stop();
    running.join();
    notify("ledger", 200);
    CHECK(all_is_read());
}

} // namespace ledger_waking_test
