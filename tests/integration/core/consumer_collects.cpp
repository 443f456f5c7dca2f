// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A consumer that collects beside its work: ConsumerOptions::collect.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/consumer_options.hpp>
#include <orizuru/event.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace consumer_collects_test {

using namespace std::chrono_literals;
using orizuru::Consumer;
using orizuru::ConsumerOptions;
using orizuru::EventKind;
using orizuru::Raw;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Stopwatch;

struct Fixture : QueueFixture {
    static std::string next_of(Consumer<Raw>& consumer) {
        auto message = consumer.next(patience);
        REQUIRE(message);
        const std::string bytes = (*message)->bytes;
        message->ack();
        return bytes;
    }
};

TEST_CASE_FIXTURE(Fixture, "what a consumer rejects comes back when it collects, and only then") {
    redis.lpush("q", "a");
    Consumer<Raw> plain(uri, "q");
    plain.next(patience)->reject();
    CHECK_FALSE(plain.next(200ms));
    CHECK(redis.llen(unack) == 1);
    Consumer<Raw> collecting(uri, "q", {.collect = 20ms});
    CHECK(next_of(collecting) == "a");
    CHECK(redis.llen(unack) == 0);
}

TEST_CASE_FIXTURE(Fixture, "what a dead consumer held comes back, at the queue's serving end") {
    add_dead_consumer("dead", {"a"}, "orz:0123456789abcdefl1000:7"); // with a lease of 1 s
    redis.lpush("q", "b");
    Consumer<Raw> collecting(uri, "q", {.collect = 20ms});
    CHECK(eventually([&] {
        return redis.command({"SISMEMBER", "orizuru:{q}:consumers", "dead"}).integer == 0;
    }));
    CHECK(next_of(collecting) == "a");
    CHECK(next_of(collecting) == "b");
}

TEST_CASE_FIXTURE(Fixture, "a consumer that collects ends at once, also while Redis is frozen, and "
                           "its collector goes on behind an outage") {
    RedisServer server;
    RedisClient own(server.uri());
    auto consumer = std::make_unique<Consumer<Raw>>(server.uri() + "?command_timeout=60000", "q",
                                                    ConsumerOptions{.collect = 20ms});
    const auto rejected_comes_back = [&] {
        own.lpush(unack, "a");
        return eventually([&] { return own.llen(unack) == 0; });
    };
    CHECK(rejected_comes_back());
    server.restart();
    CHECK(rejected_comes_back());
    server.pause();
    std::this_thread::sleep_for(100ms); // some intervals: its collector waits for an answer
    const Stopwatch stopwatch;
    consumer->end_by(std::chrono::steady_clock::now() + 100ms);
    consumer.reset();
    CHECK(stopwatch.elapsed() < 3s);
}

TEST_CASE_FIXTURE(Fixture, "what only a person can mend is told, and the consumer goes on") {
    std::atomic<int> told{0};
    redis.command({"SET", unack, "no list"});
    Consumer<Raw> consumer(uri, "q",
                           {.collect = 20ms, .on_event = [&](const orizuru::Event& event) {
                                told += event.kind == EventKind::collect_failed &&
                                                contains(std::string(event.detail), "WRONGTYPE")
                                            ? 1
                                            : 0;
                            }});
    CHECK(eventually([&] { return told > 0; }));
    redis.lpush("q", "a");
    CHECK(next_of(consumer) == "a");
}

TEST_CASE_FIXTURE(Fixture, "an interval that cannot be is refused, and nothing is left") {
    CHECK(message_of<std::invalid_argument>([&] { Consumer<Raw>(uri, "q", {.collect = 0ms}); }) ==
          "collect must be 1 ms or more");
    CHECK(redis.keys("*").empty());
}

} // namespace consumer_collects_test
