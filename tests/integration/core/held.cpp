// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Whether a guard's message is still the consumer's own.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/event.hpp>
#include <orizuru/garbage_collector.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <utility>

namespace held_test {

using namespace std::chrono_literals;
using orizuru::Consumer;
using orizuru::GarbageCollector;
using orizuru::Raw;
using orizuru::test::eventually;

struct Fixture : orizuru::test::QueueFixture {
    Consumer<Raw> consumer{uri, "q"};
};

TEST_CASE_FIXTURE(Fixture, "a message is held from its fetch until it is settled") {
    push({"a"});
    auto guard = consumer.next();
    REQUIRE(guard);
    CHECK(guard->held());
    auto moved = std::move(*guard);
    CHECK_FALSE(guard->held());
    CHECK(moved.held());
    CHECK(moved.ack());
    CHECK_FALSE(moved.held());
}

TEST_CASE_FIXTURE(Fixture, "a message is not held while Redis is silent for a lease, and again "
                           "when it has heard the consumer in time") {
    push({"a"});
    Consumer<Raw> brief(uri, "q", {.lease = 300ms});
    const auto guard = brief.next();
    REQUIRE(guard);
    redis.command({"CLIENT", "PAUSE", "600000", "WRITE"}); // nor does it answer beats
    CHECK(eventually([&] { return !guard->held(); }));
    redis.command({"CLIENT", "UNPAUSE"});
    CHECK(eventually([&] { return guard->held(); }));
}

TEST_CASE_FIXTURE(Fixture, "a message that was lost is not held, though the consumer's lease is "
                           "its own again") {
    GarbageCollector collector(uri, "q", {.grace = 0ms});
    push({"a"});
    const auto lost = consumer.next();
    REQUIRE(lost);
    forget_heartbeat(only_id());
    REQUIRE(collector.collect().reclaimed == 1);
    const auto again = consumer.next();
    REQUIRE(again);
    CHECK(again->held());
    CHECK_FALSE(lost->held());
}

} // namespace held_test
