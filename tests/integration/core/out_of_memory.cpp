// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Redis' memory is full: pushes are refused, and consumers must go on, because only they make room.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace out_of_memory_test {

using namespace std::chrono_literals;
using orizuru::AckMode;
using orizuru::Collected;
using orizuru::GarbageCollector;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::OwnServer;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::Texts;
using orizuru::test::time_of;

struct FullServer : OwnServer {
    FullServer() : OwnServer({"--maxmemory-policy", "noeviction"}) {}

    /// Fills the memory: until make_room() nothing may allocate.
    void fill() { redis.command({"CONFIG", "SET", "maxmemory", "1"}); }
    void make_room() { redis.command({"CONFIG", "SET", "maxmemory", "0"}); }

    /// How often Redis has run, or refused, a command.
    std::int64_t count_of(const std::string& command, const std::string& field) {
        const std::string text = redis.command({"INFO", "commandstats"}).text;
        auto at = text.find("cmdstat_" + command + ":");
        at = at == std::string::npos ? at : text.find(field + "=", at);
        return at == std::string::npos ? 0 : std::stoll(text.substr(at + field.size() + 1));
    }
};

TEST_CASE_FIXTURE(FullServer, "a push to a full Redis is refused as OOM") {
    Producer<Raw> producer{server.uri(), "q"};
    producer.push({"a"});
    fill();
    std::string code;
    try {
        producer.push({"b"});
    } catch (const ReplyError& error) {
        code = error.code();
    }
    CHECK(code == "OOM");
    CHECK(producer.size() == 1);
    make_room();
    CHECK(producer.push({"b"}) == 2);
}

TEST_CASE_FIXTURE(FullServer, "consumers drain a full Redis, and at speed") {
    constexpr int count = 500;
    int prefetch = 1;
    AckMode mode = AckMode::immediate;
    SUBCASE("one by one") {}
    SUBCASE("in batches") { prefetch = 50; }
    SUBCASE("with deferred acks") {
        prefetch = 50;
        mode = AckMode::deferred;
    }
    push_numbers(count);
    fill();
    RawConsumer consumer{server.uri(), "q", {.prefetch = prefetch, .ack = mode}};
    const auto took = time_of([&] {
        for (int i = 0; i < count; ++i) {
            auto guard = take(consumer);
            CHECK(guard->bytes == std::to_string(i));
            CHECK(guard.ack());
        }
    });
    CHECK(consumer.flush() == 0);
    CHECK(took < 5s);
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(FullServer, "every settlement that moves a message works when memory is full") {
    push({"a", "b", "c", "d", "e"});
    RawConsumer consumer{server.uri(), "q", {.prefetch = 5}};
    std::vector<RawGuard> guards;
    for (int i = 0; i < 5; ++i) {
        guards.push_back(take(consumer));
    }
    fill();
    CHECK(guards[0].reject());
    CHECK(guards[1].push("other"));
    CHECK(guards[2].bury("full"));
    CHECK(guards[3].release());
    CHECK(guards[4].ack());
    CHECK(redis.lrange(unack) == Texts{"a"});
    CHECK(redis.lrange("other") == Texts{"b"});
    CHECK(redis.llen(dead) == 1);
    CHECK(redis.lrange("q") == Texts{"d"});
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(FullServer, "beats, recoveries and collectors go on when memory is full") {
    std::atomic<int> beats{0};
    const Diary diary;
    RawConsumer consumer{
        server.uri(), "q", {.lease = 1s, .on_event = diary.pen(), .on_beat = [&] { ++beats; }}};
    GarbageCollector collector{server.uri(), "q", {.grace = 0ms}};
    push({"a"});
    auto guard = take(consumer);
    fill();
    const int before = beats;
    CHECK(eventually([&] {
        CHECK(collector.collect() == Collected{});
        return beats >= before + 6;
    }));
    // A recovery: the connections are lost, with or without a settlement under way.
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    CHECK(guard.reject());
    CHECK(eventually([&] {
        try {
            return collector.collect().unacked == 1;
        } catch (const orizuru::ConnectionError&) {
            return false; // its connection was killed too
        }
    }));
    CHECK(take(consumer).ack());
    {
        const RawConsumer another{server.uri(), "q"};
        CHECK(registered() == 2);
    }
    CHECK(registered() == 1);
    CHECK(is_empty());
    CHECK(diary.count(orizuru::EventKind::lease_lost) == 0);
}

TEST_CASE_FIXTURE(FullServer, "a consumer waits for messages while memory is full, and by BLMOVE "
                              "again when there is room") {
    RawConsumer consumer{server.uri(), "q"};
    fill();
    CHECK_FALSE(consumer.next(100ms));
    const auto refused = count_of("blmove", "rejected_calls");
    CHECK(refused >= 1);
    // It is polled, but not in a frenzy: 50 ms, 100 ms, 200 ms, ...
    const auto scripts = count_of("evalsha", "calls") + count_of("eval", "calls");
    CHECK_FALSE(consumer.next(400ms));
    CHECK(count_of("blmove", "rejected_calls") - refused <= 8);
    CHECK(count_of("evalsha", "calls") + count_of("eval", "calls") - scripts <= 8);

    auto next = take_in_background(consumer);
    make_room();
    push({"a"});
    auto guard = next.get();
    REQUIRE(guard);
    CHECK(guard->ack());
    auto second = take_in_background(consumer);
    REQUIRE(somebody_waits());
    push({"b"});
    auto last = second.get();
    REQUIRE(last);
    CHECK(last->ack());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(FullServer, "stop ends a wait for memory at once") {
    RawConsumer consumer{server.uri(), "q"};
    fill();
    auto next = take_in_background(consumer);
    CHECK(eventually([&] { return count_of("blmove", "rejected_calls") >= 3; }));
    const auto waited = time_of([&] {
        consumer.stop();
        CHECK_FALSE(next.get());
    });
    CHECK(waited < 200ms);
    CHECK(nobody_left());
}

} // namespace out_of_memory_test
