// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Which consumers a collector takes for dead: those whose heartbeat is missing although Redis has
// taken writes, without a break, for long enough to hear them.

#include "integration/core/queue_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/proxy.hpp"
#include "support/replication.hpp"

#include <orizuru/detail/collector/passes.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace absences_test {

using namespace std::chrono_literals;
using orizuru::BackgroundCollector;
using orizuru::Collected;
using orizuru::Consumer;
using orizuru::ConsumerOptions;
using orizuru::GarbageCollector;
using orizuru::MessageGuard;
using orizuru::Raw;
using orizuru::test::Answer;
using orizuru::test::contains;
using orizuru::test::Elapsed;
using orizuru::test::eventually;
using orizuru::test::follow;
using orizuru::test::Proxy;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Stopwatch;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::milliseconds;

const std::string writes = "orizuru:{q}:writes";

/// The header of a consumer with that lease.
std::string header_of(milliseconds lease) {
    return "orz:0123456789abcdefl" + std::to_string(lease.count()) + ":7";
}
bool is_reaped(RedisClient& redis, const std::string& id = "dead") {
    return redis.type("orizuru:{q}:processing:" + id) == "string";
}
void add_unheard(RedisClient& redis, const std::string& header) {
    redis.lpush("orizuru:{q}:processing:dead", {header, "held"});
    redis.command({"SADD", "orizuru:{q}:consumers", "dead"});
}

/// The consumer that is registered, besides that one.
std::string registered_one(RedisClient& redis) {
    std::string one;
    for (const Answer& id : redis.command({"SMEMBERS", "orizuru:{q}:consumers"}).elements) {
        one = id.text == "dead" ? one : id.text;
    }
    return one;
}

struct Absences : QueueFixture {
    /// For how long Redis says that it has taken writes.
    std::int64_t series() {
        const Answer both = redis.command( // in one step: a beat may come between two
            {"EVAL", "return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}", "1",
             writes});
        const std::string value = both.elements.at(0).text;
        if (value.empty()) {
            return -1;
        }
        const auto gap = std::stoll(value);
        return std::stoll(value.substr(value.find(' '))) + gap - both.elements.at(1).integer;
    }
};

// ---- Redis refuses or holds writes

/// A consumer that holds a message, and a collector beside it.
struct Living {
    RedisServer server;
    RedisClient redis{server.uri()};
    Consumer<Raw> consumer{server.uri(), "q", {.lease = 1s}};
    BackgroundCollector collecting{server.uri(), "q", 200ms};
    std::string id = registered_one(redis);
    std::optional<orizuru::MessageGuard<Raw>> guard;

    Living() {
        redis.lpush("q", {"a"});
        guard = consumer.next(10s);
        REQUIRE(guard);
    }
    /// Waits until the consumer has been heard, and passes have begun behind that.
    void await_passes() {
        for (int i = 0; i < 3; ++i) {
            redis.del("orizuru:{q}:collected");
            CHECK(eventually([&] { return redis.exists("orizuru:{q}:collected"); }));
        }
        CHECK(eventually([&] { return redis.exists("orizuru:{q}:heartbeat:" + id); }));
    }
};

TEST_CASE_FIXTURE(Living,
                  "a consumer that lives keeps its messages while Redis takes no writes for "
                  "longer than its lease") {
    std::function<void()> begin;
    std::function<void()> end;
    SUBCASE("it refuses them") {
        begin = [&] { redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"}); };
        end = [&] { redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"}); };
    }
    SUBCASE("it holds them") {
        begin = [&] { redis.command({"CLIENT", "PAUSE", "60000", "WRITE"}); };
        end = [&] { redis.command({"CLIENT", "UNPAUSE"}); };
    }
    SUBCASE("it hangs") {
        begin = [&] { server.pause(); };
        end = [&] { server.resume(); };
    }
    for (int round = 0; round < 2; ++round) {
        begin();
        std::this_thread::sleep_for(2500ms);
        end();
        await_passes();
    }
    CHECK(registered_one(redis) == id);
    CHECK(guard->ack());
    CHECK(redis.llen("q") == 0);
    CHECK(redis.llen("orizuru:{q}:dead") == 0);
}

TEST_CASE_FIXTURE(Living,
                  "consumers that were in doubt when Redis began to refuse writes are heard in "
                  "time when it takes them again") {
    constexpr std::size_t count = 12; // or all may happen to try again in time
    Proxy way(server.socket_path());
    std::vector<std::unique_ptr<Consumer<Raw>>> others;
    std::vector<MessageGuard<Raw>> acked;
    std::vector<MessageGuard<Raw>> kept;
    redis.lpush("q", Texts(10 * count, "b")); // consumers fetch ahead
    for (std::size_t i = 0; i < count; ++i) {
        others.push_back(std::make_unique<Consumer<Raw>>(
            way.uri(), "q", ConsumerOptions{.lease = 1500ms, .prefetch = 2, .on_event = {}}));
        for (auto* guards : {&acked, &kept}) {
            auto guard = others.back()->next(10s);
            REQUIRE(guard);
            guards->push_back(std::move(*guard));
        }
    }
    way.freeze(); // the replies to the acks are lost
    std::vector<std::jthread> acking;
    for (MessageGuard<Raw>& guard : acked) {
        acking.emplace_back([&guard] {
            try {
                static_cast<void>(guard.ack());
            } catch (const orizuru::Error&) { // NOLINT(bugprone-empty-catch)
                // It goes on in the background.
            }
        });
    }
    std::this_thread::sleep_for(50ms);
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    for (int cut = 0; cut < 3; ++cut) {
        way.break_all();
        way.thaw();
        std::this_thread::sleep_for(50ms);
    }
    std::this_thread::sleep_for(
        5s); // then their attempts are seconds apart, if nothing bounds that
    redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    await_passes();
    CHECK(eventually([&] { // who is taken for dead is registered no more
        return redis.command({"SCARD", "orizuru:{q}:consumers"}).integer ==
               std::ssize(redis.command({"KEYS", "orizuru:{q}:heartbeat:*"}).elements);
    }));
    for (MessageGuard<Raw>& guard : kept) {
        CHECK(guard.ack());
    }
}

// ---- How long it takes

TEST_CASE_FIXTURE(Absences, "where others beat, a dead consumer is found by the first pass of a "
                            "collector that has just started") {
    Consumer<Raw> living(uri, "q", {.lease = 1s});
    add_unheard(redis, header_of(1s));
    REQUIRE(eventually([this] { return series() > 1000; }));
    CHECK(time_of([this] { CHECK(GarbageCollector(uri, "q").collect().reclaimed == 1); }) < 500ms);
    CHECK(is_reaped(redis));
    CHECK(waiting() == Texts{"held"});
}

TEST_CASE_FIXTURE(Absences, "the only consumer is found dead within its lease and two intervals or "
                            "the grace") {
    GarbageCollector collector(uri, "q", {.grace = 2s});
    const std::jthread running([&](const std::stop_token& token) { collector.run(token, 300ms); });
    for (const milliseconds lease : {milliseconds(500), milliseconds(2000), milliseconds(6000)}) {
        CAPTURE(lease.count());
        const milliseconds least = std::max(lease / 2, std::min<milliseconds>(lease, 1700ms));
        redis.flushall();
        const auto took = time_of([&] {
            add_unheard(redis, header_of(lease));
            CHECK(eventually([this] { return is_reaped(redis); }));
        });
        CHECK(took >= least);
        CHECK(took < least + 1s);
    }
}

TEST_CASE_FIXTURE(Living, "a collector that is refused while it waits for an absence to count goes "
                          "on as soon as it can") {
    add_unheard(redis, header_of(3s));
    GarbageCollector collector(server.uri(), "q", {.grace = 1min});
    const std::jthread running([&](const std::stop_token& token) { collector.run(token, 30s); });
    REQUIRE(eventually([&] { return redis.exists("orizuru:{q}:collected"); }));
    const auto took = time_of([&] {
        redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
        std::this_thread::sleep_for(2s);
        redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        CHECK(eventually([&] { return is_reaped(redis); }));
    });
    CHECK(took < 15s); // not in the next pass
}

/// A collector of an own server, where others keep a series going.
struct Refused {
    RedisServer server;
    RedisClient redis{server.uri()};
    GarbageCollector collector{server.uri() + "?command_timeout=1500", "q"};
    std::jthread running{[this](const std::stop_token& token) { collector.run(token, 100ms); }};

    /// Returns how long an unheard consumer stays, although Redis has taken writes for long.
    Elapsed time_to_reap(milliseconds lease) {
        redis.command({"EVAL",
                       "redis.call('RPUSH', KEYS[1], 'held', ARGV[1]) "
                       "redis.call('SADD', KEYS[2], 'dead') "
                       "redis.call('SET', KEYS[3], ARGV[2] .. ' 100000 0', 'PX', ARGV[2])",
                       "3", "orizuru:{q}:processing:dead", "orizuru:{q}:consumers", writes,
                       header_of(lease), std::to_string((lease * 5 / 12).count())});
        return time_of([this] { CHECK(eventually([this] { return is_reaped(redis); })); });
    }
};

TEST_CASE_FIXTURE(Refused, "a collector that was refused counts an absence once Redis has answered "
                           "it for as long as a living consumer needs to be heard") {
    REQUIRE(eventually([this] { return redis.exists("orizuru:{q}:collected"); }));
    SUBCASE("it was not refused") { CHECK(time_to_reap(6s) < 2s); }
    SUBCASE("it was refused") {
        redis.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
        REQUIRE(eventually([this] {
            return contains(redis.command({"INFO", "errorstats"}).text, "errorstat_NOREPLICAS");
        }));
        redis.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
        SUBCASE("an attempt lasts a third of the lease") { CHECK(time_to_reap(3s) >= 1200ms); }
        SUBCASE("an attempt lasts for command_timeout") {
            const auto took = time_to_reap(1min);
            CHECK(took >= 2400ms); // and as long as there may be between two
            CHECK(took < 5s);
        }
    }
}

/// A collector whose steps the test calls, and something between that cuts its connections.
struct Stepping {
    RedisServer server;
    RedisClient redis{server.uri()};
    orizuru::Connection connection{server.uri() + "?command_timeout=200"};
    orizuru::detail::Passes passes{orizuru::Keys("q"), connection, {}};

    void cut_connections() { redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); }
    int steps = 0;
    Elapsed time_to_reap(const std::function<void()>& before_each_step) {
        add_unheard(redis, header_of(3s));
        return time_of([&] {
            CHECK(eventually([&] {
                redis.command({"SET", writes, "1250 100000 0", "PX", "1250"});
                before_each_step();
                passes.step(10ms);
                ++steps;
                return is_reaped(redis);
            }));
        });
    }
};

TEST_CASE_FIXTURE(Stepping,
                  "a collector whose connection was lost while it asked nothing counts an "
                  "absence as late as one that was refused") {
    SUBCASE("its connection was kept") {
        time_to_reap([] {});
        CHECK(steps == 1);
    }
    SUBCASE("its connection was lost") {
        passes.step(10ms);
        cut_connections();
        CHECK(time_to_reap([] {}) >= 450ms); // 200 ms of an attempt, 250 ms between two
    }
}

TEST_CASE("a connection that was lost before a refusal ended says nothing new") {
    constexpr auto lasts = 300ms;
    orizuru::detail::LastRefusal last({}, 200ms);
    const auto made_at = orizuru::detail::Clock::now();
    last.came();
    std::this_thread::sleep_for(lasts);
    last.ended();
    const auto ended_at = orizuru::detail::Clock::now();
    last.connected(made_at);
    CHECK(std::stoll(last.age()) <= orizuru::detail::milliseconds_since(ended_at) + 1);
    last.connected(ended_at + 1h); // lost without a word
    CHECK(std::stoll(last.age()) <= 0);
}

TEST_CASE_FIXTURE(Stepping, "a collector reaps although something cuts all its idle connections") {
    passes.step(10ms);
    time_to_reap([this] { cut_connections(); });
}

TEST_CASE_FIXTURE(Absences, "a collector whose passes fail at their end has reaped all the same") {
    redis.command({"SET", "orizuru:{q}:unack", "no list"});
    const BackgroundCollector collecting{uri, "q", 100ms, {.on_event = {}}};
    add_unheard(redis, header_of(1s));
    CHECK(eventually([this] {
        redis.command({"SET", writes, "416 100000 0", "PX", "416"}); // others keep it going
        return is_reaped(redis);
    }));
}

TEST_CASE_FIXTURE(Absences, "a single collect() leaves a mark where nobody writes, and counts from "
                            "it the next time") {
    GarbageCollector collector(uri, "q");
    add_unheard(redis, header_of(6s));
    CHECK(time_of([&] { CHECK(collector.collect() == Collected{}); }) < 1s);
    REQUIRE(eventually([this] { return series() > 1100; }));
    CHECK(series() >= 0);
    const auto took = time_of([&] { CHECK(collector.collect().consumers == 1); });
    CHECK(took >= 1900ms); // in which a consumer that was refused would have beaten
    CHECK(took < 4s);
    CHECK(is_reaped(redis));
}

TEST_CASE_FIXTURE(Absences, "a beat ends what a single collect() counts from") {
    GarbageCollector collector(uri, "q");
    add_unheard(redis, header_of(6s));
    CHECK(collector.collect() == Collected{});
    const Consumer<Raw> living(uri, "q", {.lease = 24h}); // its first beat comes in 8 hours
    const std::string id = registered_one(redis);
    REQUIRE(eventually([this] { return series() > 1100; }));
    const auto begun = std::chrono::steady_clock::now();
    CHECK(redis
              .command({"EVAL", std::string(orizuru::detail::beat_script()), "4", heartbeat(id),
                        processing(id), consumers, writes, id, "86400000", "orizuru:{q}:suspects",
                        "", "600000"})
              .integer == 1);
    CHECK(eventually([&] { return collector.collect().consumers == 1; }));
    CHECK(std::chrono::steady_clock::now() - begun >= 2900ms);
}

TEST_CASE_FIXTURE(Absences, "a consumer whose lease is unknown is dead once Redis has taken writes "
                            "for the grace") {
    GarbageCollector collector(uri, "q", {.grace = 3s});
    const std::jthread running([&](const std::stop_token& token) { collector.run(token, 200ms); });
    const auto took = time_of([&] {
        add_unheard(redis, "orz:0123456789abcdef:7"); // as 0.1.0 writes it
        CHECK(eventually([this] { return is_reaped(redis); }));
    });
    CHECK(took >= 2900ms);
    CHECK(took < 5s);
}

TEST_CASE_FIXTURE(Absences, "without a grace a missing heartbeat is enough") {
    add_unheard(redis, header_of(1h));
    CHECK(GarbageCollector(uri, "q", {.grace = 0ms}).collect().consumers == 1);
    CHECK_FALSE(redis.exists(writes));
}

// ---- What keeps the series from being told

TEST_CASE_FIXTURE(Absences, "a beat that cannot tell of itself is still a beat") {
    const auto is_heard = [this] {
        const std::string key = heartbeat(registered_one(redis));
        redis.command({"PEXPIRE", key, "500"});
        return eventually([&] { return redis.command({"PTTL", key}).integer > 500; });
    };
    SUBCASE("without the right to PTTL") {
        redis.command(
            {"ACL", "SETUSER", "clerk", "reset", "on", ">x", "~*", "&*", "+@all", "-pttl"});
        Consumer<Raw> consumer("unix://clerk:x@" + orizuru::test::server().socket_path(), "q",
                               {.lease = 1s});
        CHECK(is_heard());
        CHECK_FALSE(redis.exists(writes));
        redis.command({"ACL", "DELUSER", "clerk"});
    }
    SUBCASE("where the key is another one's") {
        redis.lpush(writes, {"x"});
        Consumer<Raw> consumer(uri, "q", {.lease = 1s});
        CHECK(is_heard());
        CHECK(redis.lrange(writes) == Texts{"x"});
    }
}

TEST_CASE_FIXTURE(Absences, "a value that no beat has written is no series") {
    for (const std::string value : {"x", "", "1 2", "-1 5 5", "1000 5000 0"}) {
        CAPTURE(value);
        redis.flushall();
        add_unheard(redis, header_of(2s));
        // Longer than any gap that it names.
        redis.command({"SET", writes, value, "PX", "60000"});
        CHECK(time_of([this] { CHECK(GarbageCollector(uri, "q").collect().consumers == 1); }) >=
              900ms);
    }
}

// ---- Failovers

struct Failover {
    RedisServer first{{"--repl-diskless-sync-delay", "0"}, RedisServer::Listen::tcp};
    RedisServer second{{"--repl-diskless-sync-delay", "0"}, RedisServer::Listen::tcp};
    RedisClient first_redis{first.uri()};
    RedisClient second_redis{second.uri()};
    Proxy way{first.socket_path()};

    Failover() { follow(second_redis, first); }
    void promote() {
        first.kill();
        second_redis.command({"REPLICAOF", "NO", "ONE"});
        way.lead_to(second.socket_path());
        way.break_all();
    }
};

TEST_CASE_FIXTURE(Failover,
                  "collectors that run spare the living after a failover, and return what "
                  "was rejected at once") {
    GarbageCollector collector(way.uri(), "q", {.grace = 3s});
    const std::jthread running([&](const std::stop_token& token) { collector.run(token, 20ms); });
    first_redis.lpush("orizuru:{q}:unack", "x");
    REQUIRE(eventually([this] { return second_redis.llen("q") == 1; })); // replicated
    promote();
    const Stopwatch stopwatch;
    add_unheard(second_redis, header_of(4s));
    second_redis.lpush("orizuru:{q}:unack", "y");
    CHECK(eventually([this] { return second_redis.llen("q") == 2; }));
    CHECK_FALSE(is_reaped(second_redis));
    CHECK(eventually([this] { return is_reaped(second_redis); }));
    CHECK(stopwatch.elapsed() >= 2900ms);
}

TEST_CASE_FIXTURE(Failover, "the first recovery behind a failover takes no longer than any other") {
    const Consumer<Raw> living(way.uri(), "q", {.lease = 1s});
    promote();
    add_unheard(second_redis, header_of(1s));
    REQUIRE(eventually([this] {
        const std::string value = second_redis.command({"GET", writes}).text;
        return !value.empty() && std::stoll(value.substr(value.find(' '))) > 1000;
    }));
    CHECK(time_of([this] { CHECK(GarbageCollector(way.uri(), "q").collect().consumers == 1); }) <
          500ms);
}

} // namespace absences_test
