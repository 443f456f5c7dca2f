// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A collector with a thread of its own, beside a consumer or alone.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/background_collector.hpp>
#include <orizuru/consumer.hpp>
#include <orizuru/event.hpp>
#include <orizuru/garbage_collector_options.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace background_collector_test {

using namespace std::chrono_literals;
using orizuru::BackgroundCollector;
using orizuru::Consumer;
using orizuru::Event;
using orizuru::EventKind;
using orizuru::GarbageCollectorOptions;
using orizuru::Raw;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::time_of;

static_assert(!std::is_copy_constructible_v<BackgroundCollector> &&
              !std::is_copy_assignable_v<BackgroundCollector>);
static_assert(std::is_nothrow_move_constructible_v<BackgroundCollector> &&
              std::is_nothrow_move_assignable_v<BackgroundCollector>);

struct Fixture : QueueFixture {
    static std::string next_of(Consumer<Raw>& consumer) {
        auto message = consumer.next(patience);
        REQUIRE(message);
        const std::string bytes = (*message)->bytes;
        message->ack();
        return bytes;
    }
    static bool rejected_comes_back(RedisClient& client, const std::string& queue = "q") {
        const std::string list = "orizuru:{" + queue + "}:unack";
        client.lpush(list, "a");
        return eventually([&] { return client.llen(list) == 0; });
    }
    /// Counts the connections of that name.
    long named(const std::string& name) {
        const std::string clients = redis.command({"CLIENT", "LIST"}).text;
        long count = 0;
        for (auto at = clients.find(" name=" + name + " "); at != std::string::npos;
             at = clients.find(" name=" + name + " ", at + 1)) {
            ++count;
        }
        return count;
    }
};

/// A server of the test's own, which may go away.
struct Outage : Fixture {
    RedisServer server;
    RedisClient own{server.uri()};
};

// ---- It collects

TEST_CASE_FIXTURE(Fixture, "what a consumer rejects comes back when a collector runs in the "
                           "background, and only then") {
    redis.lpush("q", "a");
    Consumer<Raw> consumer(uri, "q");
    consumer.next(patience)->reject();
    CHECK_FALSE(consumer.next(200ms));
    CHECK(redis.llen(unack) == 1);
    const BackgroundCollector collecting(uri, "q", 20ms);
    CHECK(next_of(consumer) == "a");
    CHECK(redis.llen(unack) == 0);
}

TEST_CASE_FIXTURE(Fixture, "what a dead consumer held comes back, at the queue's serving end") {
    add_dead_consumer("dead", {"a"}, "orz:0123456789abcdefl1000:7"); // with a lease of 1 s
    redis.lpush("q", "b");
    const BackgroundCollector collecting(uri, "q", 20ms);
    CHECK(eventually([&] {
        return redis.command({"SISMEMBER", "orizuru:{q}:consumers", "dead"}).integer == 0;
    }));
    Consumer<Raw> consumer(uri, "q");
    CHECK(next_of(consumer) == "a");
    CHECK(next_of(consumer) == "b");
}

TEST_CASE_FIXTURE(Fixture, "a collector in the background goes by its options") {
    const Diary diary;
    add_dead_consumer("dead", {"a"});
    const BackgroundCollector collecting(
        uri, "q", 20ms, {.max_recoveries = 0, .grace = 0ms, .on_event = diary.pen()});
    CHECK(eventually([&] { return redis.llen(dead) == 1; }));
    CHECK(eventually([&] { return diary.count(EventKind::buried) == 1; }));
    CHECK(diary.of(EventKind::buried).front().payload == "a");
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(Fixture, "its connection has the name that the address gives, and no other") {
    const BackgroundCollector collecting(uri + "?client_name=mill", "q", 20ms);
    CHECK(eventually([&] { return named("mill") == 1; }));
    CHECK(rejected_comes_back(redis));
    CHECK(named("mill") == 1);
}

TEST_CASE_FIXTURE(Fixture, "one that is moved goes on, and one that is replaced ends") {
    BackgroundCollector first(uri + "?client_name=first", "q", 20ms);
    BackgroundCollector second(std::move(first));
    CHECK(rejected_comes_back(redis));
    second = BackgroundCollector(uri + "?client_name=second", "other", 20ms);
    CHECK(rejected_comes_back(redis, "other"));
    CHECK(eventually([&] { return named("first") == 0; }));
    CHECK(named("second") == 1);
}

// ---- It waits out outages, and ends at once

TEST_CASE_FIXTURE(Outage, "it begins before Redis can be reached, and goes on behind an outage") {
    server.kill();
    const BackgroundCollector collecting(server.uri(), "q", 20ms);
    std::this_thread::sleep_for(100ms); // some attempts
    server.restart();
    CHECK(rejected_comes_back(own));
    server.restart();
    CHECK(rejected_comes_back(own));
}

TEST_CASE_FIXTURE(Outage, "it ends at once") {
    std::unique_ptr<BackgroundCollector> collecting;
    const auto begin = [&](std::chrono::milliseconds interval) {
        collecting = std::make_unique<BackgroundCollector>(server.uri() + "?command_timeout=60000",
                                                           "q", interval);
        CHECK(rejected_comes_back(own));
    };
    SUBCASE("while Redis is frozen") {
        begin(20ms);
        server.pause();
        std::this_thread::sleep_for(100ms); // some intervals: it waits for an answer
    }
    SUBCASE("while there is no Redis") {
        begin(20ms);
        server.kill();
        std::this_thread::sleep_for(500ms); // some attempts, so that its pauses are long
    }
    SUBCASE("between its passes") { begin(24h); }
    CHECK(time_of([&] { collecting.reset(); }) < 3s);
}

// ---- Errors

TEST_CASE_FIXTURE(Fixture, "what only a person can fix is told, and the consumer goes on") {
    const Diary diary;
    redis.command({"SET", unack, "no list"});
    auto collecting = std::make_unique<BackgroundCollector>(
        uri, "q", 20ms, GarbageCollectorOptions{.on_event = diary.pen()});
    CHECK(eventually([&] { return diary.count(EventKind::collect_failed) == 1; }));
    CHECK(contains(diary.of(EventKind::collect_failed).front().detail, "WRONGTYPE"));
    CHECK(diary.of(EventKind::collect_failed).front().queue == "q");
    Consumer<Raw> consumer(uri, "q");
    redis.lpush("q", "a");
    CHECK(next_of(consumer) == "a");
    CHECK(time_of([&] { collecting.reset(); }) < 3s); // it ends in the pause behind its failure
}

TEST_CASE_FIXTURE(Fixture, "its on_event may destroy it") {
    struct Slot {
        std::mutex mutex;
        std::unique_ptr<BackgroundCollector> collecting;
    };
    const auto slot = std::make_shared<Slot>(); // its thread may outlive the test
    add_dead_consumer("dead", {"a"});
    {
        const std::lock_guard lock(slot->mutex);
        slot->collecting = std::make_unique<BackgroundCollector>(
            uri + "?client_name=mill", "q", 20ms,
            GarbageCollectorOptions{
                .max_recoveries = 0, .grace = 0ms, .on_event = [slot](const Event&) {
                    const std::lock_guard once_it_is_there(slot->mutex);
                    slot->collecting.reset();
                }});
    }
    CHECK(eventually([&] {
        const std::lock_guard lock(slot->mutex);
        return slot->collecting == nullptr;
    }));
    CHECK(eventually([&] { return named("mill") == 0; }));
    CHECK(redis.llen(dead) == 1);
}

TEST_CASE_FIXTURE(Fixture, "what cannot be is refused before anything is started") {
    const auto connections = [this] { return info("stats", "total_connections_received"); };
    const auto before = connections();
    const auto refusal = [this](const std::string& queue, std::chrono::milliseconds interval,
                                const GarbageCollectorOptions& options = {}) {
        return message_of<std::invalid_argument>(
            [&] { BackgroundCollector(uri, queue, interval, options); });
    };
    CHECK(refusal("", 1s) == "the queue name is empty");
    CHECK(contains(refusal("orizuru:q", 1s), "reserved"));
    for (const auto interval : {0ms, -1ms}) {
        CHECK(refusal("q", interval) == "the collector's interval must be positive");
    }
    CHECK(refusal("q", 1s, {.max_recoveries = -1}) ==
          "max_recoveries, dead_limit and grace must not be negative");
    CHECK(refusal("q", 1s, {.batch = 0}) == "batch must be 1 to 1000");
    CHECK(refusal("q", 1s, {.batch = 1001}) == "batch must be 1 to 1000");
    CHECK(contains(refusal("q", 1s, {.grace = -1ms}), "must not be negative"));
    CHECK(refusal("q", 1s, {.grace = 24h + 1ms}) == "grace must be 24 h at most");
    CHECK(contains(refusal("q", 1s, {.dead_limit = -1}), "must not be negative"));
    CHECK(refusal("q", 1s, {.blamed = 0}) == "blamed must be 1 or more");
    CHECK(message_of<std::invalid_argument>([] { BackgroundCollector("http://x", "q", 1s); }) !=
          "");
    CHECK(connections() == before);
    CHECK(redis.keys("*").empty());
}

} // namespace background_collector_test
