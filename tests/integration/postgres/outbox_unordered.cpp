// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages in no order, and what wakes a relay for them. It sweeps once a day here, so that nothing
// happens by chance.

#include "integration/postgres/outbox_fixture.hpp"

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace outbox_unordered_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

struct Unordered : OutboxFixture {
    Outbox<std::string> any{"q", {.order = OutboxOrder::none}};
    OutboxRelayOptions daily{.sweep = 24h, .on_event = {}};

    void commit_any(const std::string& payload) {
        pqxx::work tx(postgres_connection);
        any.push(tx, payload);
        tx.commit();
    }
    /// True when the relay has said that it sleeps.
    bool asleep() {
        return eventually([this] {
            return number("SELECT (last_value > extract(epoch FROM now()) * 1000)::int "
                          "FROM orizuru_outbox_sleep") == 1;
        });
    }
    void say_awake() { sql("SELECT orizuru_wake('outbox')"); }
    bool arrives(std::int64_t messages) {
        return eventually([&] { return redis.llen("q") == messages; });
    }
};

TEST_CASE_FIXTURE(Unordered, "they are sent when their transaction is committed, and only then") {
    {
        pqxx::work tx(postgres_connection);
        any.push(tx, "rolled back");
    }
    pqxx::work tx(postgres_connection);
    const std::string id = any.push(tx, "a");
    any.push_all(tx, std::vector<std::string>{"b", "c"});
    CHECK(relay() == 0);
    tx.commit();
    CHECK(relay() == 3);
    CHECK(sent() == Texts{"a", "b", "c"});
    CHECK(job_of(oldest_first("q").front()).id == id);
    CHECK(relay() == 0);
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(Unordered, "one that has all but committed holds up no other") {
    commit_any("before"); // the first one of a queue does
    pqxx::connection other(impatient());
    pqxx::work first(postgres_connection);
    any.push(first, "first");
    first.exec("SET CONSTRAINTS ALL IMMEDIATE");
    pqxx::work second(other);
    any.push(second, "second");
    second.commit();
    CHECK(relay() == 2);
    first.commit();
    CHECK(relay() == 1);
    CHECK(sent() == Texts{"before", "second", "first"});
}

TEST_CASE_FIXTURE(Unordered, "a relay that sleeps is woken by their commit") {
    const RunningRelay relay(database, uri, daily);
    for (int i = 1; i <= 5; ++i) {
        REQUIRE(asleep());
        commit_any("x");
        CHECK(arrives(i));
    }
}

TEST_CASE_FIXTURE(Unordered, "a commit sends a NOTIFY while a relay sleeps, and not while it is "
                             "awake") {
    pqxx::connection listener(database.conninfo());
    Listener heard(listener, "orizuru_outbox");
    say_awake();
    commit_any("a");
    CHECK(heard.since() == 0);
    sql("SELECT orizuru_doze('outbox', 1000)");
    commit_any("b");
    CHECK(heard.since() == 1);
}

TEST_CASE_FIXTURE(Unordered, "none is slept through, whatever is committed beside it") {
    const RunningRelay one(database, uri, daily);
    const RunningRelay two(database, uri, daily);
    std::atomic<int> late{0};
    const auto push = [&](int writer) {
        pqxx::connection connection(database.conninfo());
        const std::string queue = "q" + std::to_string(writer);
        const Outbox<std::string> own(queue, {.order = OutboxOrder::none});
        RedisClient client(uri);
        for (int i = 1; i <= 100; ++i) {
            pqxx::work tx(connection);
            own.push(tx, "x");
            tx.commit();
            if (!eventually([&] { return client.llen(queue) == i; })) {
                ++late;
                return;
            }
        }
    };
    {
        std::vector<std::jthread> writers;
        for (int writer = 0; writer < 6; ++writer) {
            writers.emplace_back(push, writer);
        }
    }
    CHECK(late == 0);
    CHECK(eventually([&] { return is_empty(); }));
}

TEST_CASE_FIXTURE(Unordered, "one whose COMMIT takes longer than a relay waits is sent soon") {
    pqxx::connection other(database.conninfo());
    pqxx::work slow(other);
    any.push(slow, "x");
    slow.exec("SET CONSTRAINTS ALL IMMEDIATE"); // while nobody sleeps
    const RunningRelay relay(database, uri, daily);
    REQUIRE(asleep());
    std::this_thread::sleep_for(300ms); // longer than it waits for the lock
    slow.commit();
    CHECK(arrives(1));
}

TEST_CASE_FIXTURE(Unordered, "one that is committed while a relay falls asleep is sent") {
    pqxx::connection other(database.conninfo());
    pqxx::work tx(other);
    any.push(tx, "x");
    tx.exec("SET CONSTRAINTS ALL IMMEDIATE"); // while nobody sleeps
    const RunningRelay relay(database, uri, daily);
    REQUIRE(someone_dozes_off());
    tx.commit();
    CHECK(arrives(1));
}

TEST_CASE_FIXTURE(Unordered, "another relay takes over when the one that was awake has died") {
    const RunningRelay relay(database, uri, daily);
    REQUIRE(asleep());
    say_awake(); // as one that dies at once
    commit_any("x");
    CHECK(arrives(1));
    REQUIRE(asleep());
    say_awake(); // as one that dies before it looks once more
    commit_any("y");
    sql("SELECT orizuru_doze('outbox', 3600000)");
    CHECK(arrives(2));
}

TEST_CASE_FIXTURE(Unordered, "they take turns with those in order, which stay in order") {
    const Outbox<std::string>& ordered = outbox;
    pqxx::work tx(postgres_connection);
    for (int i = 10; i < 30; ++i) {
        ordered.push(tx, "o" + std::to_string(i));
    }
    for (int i = 10; i < 30; ++i) {
        any.push(tx, "u" + std::to_string(i));
    }
    tx.commit();
    OutboxRelay tens(database, uri, {.batch = 10, .on_event = {}});
    CHECK(tens.relay() == 40);
    const Texts all = sent();
    REQUIRE(all.size() == 40);
    CHECK(std::count_if(all.begin(), all.begin() + 10,
                        [](const std::string& text) { return text.front() == 'o'; }) == 5);
    Texts in_order;
    std::ranges::copy_if(all, std::back_inserter(in_order),
                         [](const std::string& text) { return text.front() == 'o'; });
    CHECK(std::ranges::is_sorted(in_order));
    CHECK(std::set(all.begin(), all.end()).size() == 40);
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(Unordered, "one that is deleted by hand is not sent") {
    commit_any("a");
    commit_any("b");
    sql("DELETE FROM orizuru_outbox WHERE message = (SELECT min(message) FROM orizuru_outbox)");
    CHECK(relay() == 1);
    CHECK(sent() == Texts{"b"});
}

} // namespace outbox_unordered_test
