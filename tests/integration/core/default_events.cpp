// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a consumer tells of itself when nobody has asked it to, and whether it is collected.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"
#include "support/stderr_pipe.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace default_events_test {

using namespace std::chrono_literals;
using orizuru::Consumer;
using orizuru::ConsumerOptions;
using orizuru::DecodeError;
using orizuru::Event;
using orizuru::EventKind;
using orizuru::GarbageCollector;
using orizuru::GarbageCollectorOptions;
using orizuru::Raw;
using orizuru::test::contains;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::QueueFixture;
using orizuru::test::ShortPipe;
using orizuru::test::StderrInto;

struct Fixture : QueueFixture {
    std::string collected = "orizuru:{q}:collected";

    ~Fixture() { redis.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"}); }
    Fixture() = default;
    Fixture(const Fixture&) = delete;
    Fixture& operator=(const Fixture&) = delete;

    /// What a consumer writes that meets an eviction policy, an undecodable message and a cut.
    std::string lines_of(const ConsumerOptions& options, const std::string& last_word = {}) {
        redis.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
        push({"\xc1"});
        const ShortPipe pipe;
        const StderrInto here(pipe);
        std::string lines;
        Consumer<int> consumer(uri, "q", options);
        CHECK_THROWS_AS(static_cast<void>(consumer.next(5s)), DecodeError);
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        push({"\7"});
        CHECK(**consumer.next(20s) == 7);
        CHECK(eventually([&] {
            lines += pipe.drain();
            return contains(lines, last_word);
        }));
        return lines + pipe.drain();
    }
};

TEST_CASE_FIXTURE(Fixture, "a consumer writes what a person must see to stderr") {
    const std::string lines = lines_of({}, "reconnected");
    CHECK(contains(lines, "orizuru: not_noeviction queue=q allkeys-lru\n"));
    CHECK(contains(lines, "orizuru: decode_failed queue=q "));
    CHECK(contains(lines, "orizuru: disconnected queue=q "));
}

TEST_CASE_FIXTURE(Fixture, "a consumer with an on_event of its own writes nothing") {
    CHECK(lines_of({.on_event = [](const Event&) {}}).empty());
    redis.flushall();
    CHECK(lines_of({.on_event = nullptr}).empty());
}

TEST_CASE_FIXTURE(Fixture, "a consumer whose queue no collector visits says so; others do not") {
    const GarbageCollectorOptions at_once{.grace = 0ms};
    std::jthread collecting([&](const std::stop_token& token) {
        GarbageCollector(uri, "all the time", at_once).run(token, 1s);
    });
    const Diary diary;
    const ConsumerOptions options{.lease = 100ms, .on_event = diary.pen()};
    const Consumer<Raw> one(uri, "now and then", options);
    const Consumer<Raw> other(uri, "all the time", options);
    GarbageCollector(uri, "now and then", at_once).collect();
    const Consumer<Raw> consumer(uri, "q", options);
    CHECK(eventually([&] { return diary.count(EventKind::not_collected) > 0; }, 20s));
    const auto told = diary.of(EventKind::not_collected);
    REQUIRE(told.size() == 1);
    CHECK(told.front().queue == "q");
    CHECK(contains(told.front().detail, "GarbageCollector"));
    CHECK(contains(told.front().detail, "BackgroundCollector"));
}

TEST_CASE_FIXTURE(Fixture, "each collect() makes its mark last for a day more") {
    const Consumer<Raw> consumer(uri, "q");
    GarbageCollector collector(uri, "q", GarbageCollectorOptions{.grace = 0ms});
    collector.collect();
    redis.command({"PEXPIRE", collected, "5000"});
    collector.collect();
    const auto day = std::chrono::milliseconds(24h).count();
    CHECK(redis.command({"PTTL", collected}).integer > day / 2);
    CHECK(redis.command({"PTTL", collected}).integer <= day);
    // The one of a turn lasts longer.
    redis.command({"PEXPIRE", collected, std::to_string(2 * day)});
    collector.collect();
    CHECK(redis.command({"PTTL", collected}).integer > day);
}

TEST_CASE_FIXTURE(Fixture, "collect() delays no turn of a collector that runs") {
    const Consumer<Raw> consumer(uri, "q");
    GarbageCollector(uri, "q", GarbageCollectorOptions{.grace = 0ms}).collect();
    CHECK(redis.exists(collected));
    redis.lpush("orizuru:{q}:unack", {"rejected"});
    std::jthread collecting([&](const std::stop_token& token) {
        GarbageCollector(uri, "q", GarbageCollectorOptions{.grace = 0ms}).run(token, 24h);
    });
    CHECK(eventually([&] { return waiting() == orizuru::test::Texts{"rejected"}; }));
}

} // namespace default_events_test
