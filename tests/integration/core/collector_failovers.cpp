// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Which consumers a collector declares dead when another server takes over or its own connection
// was lost: only those that had the grace to be heard there.

#include "integration/core/queue_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/proxy.hpp"
#include "support/replication.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace collector_failovers_test {

using namespace std::chrono_literals;
using orizuru::Collected;
using orizuru::Connection;
using orizuru::ConnectionError;
using orizuru::GarbageCollector;
using orizuru::test::eventually;
using orizuru::test::follow;
using orizuru::test::Proxy;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::time_of;
using Clock = std::chrono::steady_clock;

constexpr auto grace = 2s;

/// A primary and its replica, both up for longer than the grace, and the proxy to them.
struct Failover {
    Failover() {
        follow(second_redis, first);
        for (RedisClient* const redis : {&first_redis, &second_redis}) {
            REQUIRE(eventually([redis] { return is_old(*redis); }));
        }
    }

    RedisServer first{{"--repl-diskless-sync-delay", "0"}, RedisServer::Listen::tcp};
    RedisServer second{{"--repl-diskless-sync-delay", "0"}, RedisServer::Listen::tcp};
    RedisClient first_redis{first.uri()};
    RedisClient second_redis{second.uri()};
    Proxy way{first.socket_path()};

    static bool is_old(RedisClient& redis) {
        const std::string info = redis.command({"INFO", "server"}).text;
        const std::string field = "uptime_in_seconds:";
        return std::stoi(info.substr(info.find(field) + field.size())) > grace.count();
    }
    /// A living consumer whose heartbeat has expired while no server could be reached.
    static void add_unheard(RedisClient& redis) {
        redis.lpush("orizuru:{q}:processing:id", {"orz:0123456789abcdef:7", "a"});
        redis.command({"SADD", "orizuru:{q}:consumers", "id"});
    }
    static bool is_reaped(RedisClient& redis) {
        return redis.type("orizuru:{q}:processing:id") == "string";
    }
    void promote() {
        first.kill();
        second_redis.command({"REPLICAOF", "NO", "ONE"});
        way.lead_to(second.socket_path());
        way.break_all();
    }
    /// Makes passes until the consumer is reaped; checks that this takes the grace from now on.
    static void check_grace(RedisClient& redis, GarbageCollector& collector) {
        const auto begun = Clock::now();
        CHECK(collector.collect() == Collected{});
        CHECK(eventually([&] { return collector.collect().consumers == 1; }));
        CHECK(Clock::now() - begun > grace - 500ms);
        CHECK(is_reaped(redis));
    }
};

TEST_CASE_FIXTURE(Failover, "after a failover the living have the grace to be heard by the replica "
                            "that took over, however long that one has been up") {
    GarbageCollector collector(way.uri(), "q", {.grace = grace});
    CHECK(collector.collect() == Collected{});
    promote();
    add_unheard(second_redis);
    check_grace(second_redis, collector);
}

TEST_CASE_FIXTURE(Failover, "a consumer that could not reach a running Redis has the grace, too") {
    GarbageCollector collector(way.uri(), "q", {.grace = grace});
    CHECK(collector.collect() == Collected{});
    way.break_all();
    add_unheard(first_redis);
    check_grace(first_redis, collector);
}

TEST_CASE_FIXTURE(Failover, "collectors that run spare the living after a failover, and find the "
                            "dead once the grace is over") {
    GarbageCollector collector(way.uri(), "q", {.grace = grace});
    const std::jthread running([&](const std::stop_token& token) { collector.run(token, 20ms); });
    first_redis.lpush("orizuru:{q}:unack", "x");
    REQUIRE(eventually([this] { return first_redis.llen("q") == 1; }));
    promote();
    const auto begun = Clock::now();
    add_unheard(second_redis);
    // Rejected messages do not wait for the grace.
    second_redis.lpush("orizuru:{q}:unack", "y");
    CHECK(eventually([this] { return second_redis.llen("q") == 2; }));
    CHECK_FALSE(is_reaped(second_redis));
    CHECK(eventually([this] { return is_reaped(second_redis); }));
    CHECK(Clock::now() - begun > grace - 500ms);
}

TEST_CASE_FIXTURE(Failover, "a collector that comes to a replica just promoted gives the living "
                            "the grace, too") {
    promote();
    add_unheard(second_redis);
    GarbageCollector collector(way.uri(), "q", {.grace = grace});
    check_grace(second_redis, collector);
}

TEST_CASE_FIXTURE(Failover,
                  "a collector that was connected before a promotion and looks first after "
                  "it gives the living the grace, too") {
    GarbageCollector collector(second.uri(), "q", {.grace = grace});
    REQUIRE(eventually([begun = Clock::now()] { return Clock::now() - begun > grace; }));
    second_redis.command({"REPLICAOF", "NO", "ONE"});
    add_unheard(second_redis);
    check_grace(second_redis, collector);
}

TEST_CASE_FIXTURE(Failover, "after a change of roles that leaves the connection open the living "
                            "have the grace, too") {
    GarbageCollector collector(first.uri(), "q", {.grace = grace});
    CHECK(collector.collect() == Collected{});
    REQUIRE(eventually([begun = Clock::now()] { return Clock::now() - begun > grace; }));
    first_redis.command({"REPLICAOF", "127.0.0.1", "1"});
    first_redis.command({"REPLICAOF", "NO", "ONE"});
    add_unheard(first_redis);
    check_grace(first_redis, collector);
    // Once for each change.
    first_redis.flushall();
    add_unheard(first_redis);
    CHECK(collector.collect() == Collected{.reclaimed = 1, .consumers = 1});
}

TEST_CASE_FIXTURE(Failover, "collectors that run spare the living after such a change, and find "
                            "the dead once the grace is over") {
    std::vector<std::jthread> running;
    for (int i = 0; i < 8; ++i) {
        running.emplace_back([this](const std::stop_token& token) {
            GarbageCollector(first.uri(), "q", {.grace = grace}).run(token, 100ms);
        });
    }
    // Their connections are older than the grace, and so is the server.
    REQUIRE(eventually([begun = Clock::now()] { return Clock::now() - begun > grace + 500ms; }));
    first_redis.lpush("orizuru:{q}:unack", "x");
    REQUIRE(eventually([this] { return first_redis.llen("q") == 1; }));
    // This is one step, or else their connections are closed.
    first_redis.command({"MULTI"});
    first_redis.command({"REPLICAOF", "127.0.0.1", "1"});
    first_redis.command({"REPLICAOF", "NO", "ONE"});
    first_redis.command({"EXEC"});
    const auto took = time_of([this] {
        add_unheard(first_redis);
        CHECK(eventually([this] { return is_reaped(first_redis); }));
    });
    CHECK(took > grace - 500ms);
    CHECK(took < grace + 4s);
}

TEST_CASE_FIXTURE(Failover, "a first replica is no reason for the grace") {
    const RedisServer lonely{{"--repl-diskless-sync-delay", "0"}, RedisServer::Listen::tcp};
    RedisClient redis(lonely.uri());
    REQUIRE(eventually([&] { return is_old(redis); }));
    GarbageCollector collector(lonely.uri(), "q", {.grace = grace});
    CHECK(collector.collect() == Collected{});
    // From here on Redis' uptime does not count.
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    add_unheard(redis);
    check_grace(redis, collector);
    redis.flushall();
    follow(second_redis, lonely);
    add_unheard(redis);
    CHECK(collector.collect().consumers == 1);
}

TEST_CASE_FIXTURE(Failover, "the first connection to a server that was never a replica counts by "
                            "its uptime") {
    add_unheard(first_redis);
    GarbageCollector collector(way.uri(), "q", {.grace = grace});
    CHECK(collector.collect() == Collected{.reclaimed = 1, .consumers = 1});
}

TEST_CASE_FIXTURE(Failover, "a pass whose connection is lost does not go on elsewhere") {
    first_redis.command({"CONFIG", "SET", "maxmemory-policy", "volatile-ttl"});
    GarbageCollector collector(way.uri(), "q",
                               {.grace = grace, .on_event = [this](const orizuru::Event&) {
                                    // In the middle of the pass, when it knows that it may reap.
                                    promote();
                                    add_unheard(second_redis);
                                }});
    CHECK_THROWS_AS(collector.collect(), ConnectionError);
    CHECK_FALSE(is_reaped(second_redis));
    check_grace(second_redis, collector);
}

TEST_CASE_FIXTURE(QueueFixture, "a pinned connection that is lost is not replaced, nor is anything "
                                "in doubt then") {
    Connection connection(uri);
    CHECK_FALSE(connection.replaced());
    const auto first = connection.connected_at();
    const auto kill = [this] {
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    };
    {
        const Connection::Pin pin(connection);
        CHECK(connection.command("", "PING").text == "PONG");
        kill();
        CHECK_THROWS_AS(Connection::Pin{connection}, ConnectionError);
        for (int i = 0; i < 2; ++i) {
            try {
                connection.command("", "PING");
                FAIL_CHECK("no exception");
            } catch (const ConnectionError& error) {
                CHECK_FALSE(error.in_doubt());
            }
        }
        CHECK_FALSE(connection.replaced());
    }
    CHECK(connection.command("", "PING").text == "PONG");
    CHECK(connection.replaced());
    CHECK(connection.connected_at() > first);
    kill();
    const Connection::Pin pin(connection);
    CHECK(connection.command("", "PING").text == "PONG");
}

} // namespace collector_failovers_test
