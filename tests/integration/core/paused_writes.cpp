// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// CLIENT PAUSE, which FAILOVER uses, postpones writing commands. A postponed BLMOVE neither waits
// nor is refused. Redis before 8.2 crashes when CLIENT UNBLOCK ends it with a time-out, and still
// runs it when it is ended with an error; Valkey 8 ends it.

#include "integration/core/fault_fixture.hpp"
#include "support/elapsed.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

namespace paused_writes_test {

using namespace std::chrono_literals;
using orizuru::test::eventually;
using orizuru::test::OwnServer;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::time_of;

struct PausedWrites : OwnServer {
    RawConsumer consumer{server.uri(), "q"};

    PausedWrites() {
        // Its connections are made, and its next command is BLMOVE.
        REQUIRE(eventually([&] {
            CHECK_FALSE(consumer.next(1ms));
            return orizuru::test::contains(redis.command({"INFO", "commandstats"}).text,
                                           "cmdstat_blmove:");
        }));
        redis.command({"CLIENT", "PAUSE", "60000", "WRITE"});
    }
    /// Calls until Redis has postponed the wait of a call, if it does.
    void begin_to_wait() {
        REQUIRE(eventually([&] {
            CHECK_FALSE(consumer.next(20ms));
            return somebody_is_postponed() == keeps_postponed();
        }));
    }
    void go_on() { redis.command({"CLIENT", "UNPAUSE"}); }
    /// This server runs a postponed command, even though it was to be ended with an error.
    [[nodiscard]] bool keeps_postponed() {
        return !orizuru::test::contains(redis.command({"INFO", "server"}).text, "valkey_version:");
    }
    [[nodiscard]] bool somebody_is_postponed() {
        return orizuru::test::contains(redis.command({"CLIENT", "LIST"}).text, "cmd=blmove");
    }
};

TEST_CASE_FIXTURE(PausedWrites, "a wait that ends while Redis has postponed it does no harm") {
    for (int i = 0; i < 3; ++i) {
        begin_to_wait();
    }
    CHECK(redis.command({"PING"}).text == "PONG");

    go_on();
    push({"a", "b"});
    for (const std::string expected : {"a", "b"}) {
        RawGuard guard = take(consumer);
        CHECK(guard.payload() == expected);
        CHECK(guard.ack());
    }
    CHECK_FALSE(consumer.next(20ms));
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(PausedWrites,
                  "a call that only looks in gets what a postponed wait has brought") {
    CHECK_FALSE(consumer.next(20ms));
    go_on();
    push({"a", "b", "c", "d"});
    for (const std::string expected : {"a", "b", "c", "d"}) {
        std::optional<RawGuard> guard;
        REQUIRE(eventually([&] { return (guard = consumer.next(0ms)).has_value(); }));
        CHECK(guard->payload() == expected);
        CHECK(guard->ack());
    }
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(PausedWrites,
                  "a call that ends with its wait postponed ends at once when stopped") {
    CHECK_FALSE(consumer.next(20ms));
    const std::jthread stopping([&] {
        std::this_thread::sleep_for(30ms); // then its time is up, and it asks to be unblocked
        consumer.stop();
    });
    CHECK(time_of([&] { CHECK_FALSE(consumer.next(20ms)); }) < 90ms);
    REQUIRE(eventually([&] { return consumer.stopped(); }));
    go_on();
}

TEST_CASE_FIXTURE(PausedWrites,
                  "a message that a postponed wait brings after its call is not lost") {
    begin_to_wait();
    go_on();
    push({"a"});
    const bool kept = keeps_postponed();
    REQUIRE(eventually([&] { return held().size() == (kept ? 1 : 0); }));
    RawGuard guard = take(consumer);
    CHECK(guard.payload() == "a");
    CHECK(guard.ack());
    CHECK_FALSE(consumer.next(20ms));
    CHECK(is_empty());
}

TEST_CASE("a consumer that ends while Redis has postponed its wait takes no message with it") {
    OwnServer own;
    {
        RawConsumer consumer{own.server.uri() + "?command_timeout=200", "q"};
        CHECK_FALSE(consumer.next(1ms));
        own.redis.command({"CLIENT", "PAUSE", "60000", "WRITE"});
        CHECK_FALSE(consumer.next(20ms));
    }
    own.redis.command({"CLIENT", "UNPAUSE"});
    own.push({"a"});
    own.forget_heartbeats();
    orizuru::GarbageCollector(own.server.uri(), "q", {.grace = 0ms}).collect();
    CHECK(own.everywhere() == orizuru::test::Texts{"a"});
    CHECK(own.nobody_left());
    CHECK(own.redis.llen("q") == 1);
}

} // namespace paused_writes_test
