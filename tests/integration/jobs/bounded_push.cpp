// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A queue with a bounded length: which messages are refused, and which are dropped.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/bounded_push.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace bounded_push_test {

using namespace std::chrono_literals;
using orizuru::BoundedPush;
using orizuru::Consumer;
using orizuru::EncodeError;
using orizuru::Overflow;
using orizuru::Producer;
using orizuru::push_bounded;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::server;
using orizuru::test::Texts;

struct Fixture : QueueFixture {
    Producer<Raw> producer{uri, "q"};
};

TEST_CASE_FIXTURE(Fixture, "a full queue refuses a message, and stays unchanged") {
    CHECK(push_bounded(producer, {"a"}, {.max_length = 2}) == BoundedPush{true, 0, 1});
    CHECK(push_bounded(producer, {"b"}, {.max_length = 2}) == BoundedPush{true, 0, 2});
    CHECK(push_bounded(producer, {"c"}, {.max_length = 2}) == BoundedPush{false, 0, 2});
    CHECK(waiting() == Texts{"a", "b"});
}

TEST_CASE_FIXTURE(Fixture, "a full queue drops its oldest message for a new one") {
    const orizuru::QueueBound bound{2, Overflow::drop_oldest};
    CHECK(push_bounded(producer, {"a"}, bound) == BoundedPush{true, 0, 1});
    CHECK(push_bounded(producer, {"b"}, bound) == BoundedPush{true, 0, 2});
    CHECK(push_bounded(producer, {"c"}, bound) == BoundedPush{true, 1, 2});
    CHECK(waiting() == Texts{"b", "c"});
    CHECK(push_bounded(producer, {"d"}, {1, Overflow::drop_oldest}) == BoundedPush{true, 2, 1});
    CHECK(waiting() == Texts{"d"});
}

TEST_CASE_FIXTURE(Fixture, "a bounded push is one command") {
    CHECK(push_bounded(producer, {"a"}, {.max_length = 1}).pushed); // Redis knows the script then
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(push_bounded(producer, {"b"}, {1, Overflow::drop_oldest}).pushed);
    CHECK(info("commandstats", "cmdstat_evalsha:calls") == 1);
    CHECK(info("commandstats", "cmdstat_eval:calls") == 0);
    CHECK(info("commandstats", "cmdstat_multi:calls") == 0);
}

TEST_CASE_FIXTURE(Fixture, "deliveries in flight do not count") {
    push({"a", "b"});
    Consumer<Raw> consumer(uri, "q", {.prefetch = 2});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    CHECK(push_bounded(producer, {"c"}, {.max_length = 1}) == BoundedPush{true, 0, 1});
    CHECK(guard->release());
    CHECK(redis.llen("q") == 2);
    CHECK(push_bounded(producer, {"d"}, {.max_length = 2}) == BoundedPush{false, 0, 2});
}

TEST_CASE_FIXTURE(Fixture, "producers at once cannot exceed the bound") {
    std::atomic<int> pushed{0};
    {
        std::vector<std::jthread> threads;
        threads.reserve(4);
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&] {
                Producer<Raw> own(uri, "q");
                for (int n = 0; n < 100; ++n) {
                    pushed += push_bounded(own, {"x"}, {.max_length = 150}).pushed ? 1 : 0;
                }
            });
        }
    }
    CHECK(pushed == 150);
    CHECK(redis.llen("q") == 150);
}

TEST_CASE_FIXTURE(Fixture, "a bound or a message that cannot be is refused before anything is "
                           "sent") {
    CHECK_THROWS_AS((void)push_bounded(producer, {"a"}, {.max_length = 0}), std::invalid_argument);
    CHECK_THROWS_AS((void)push_bounded(producer, {"a"}, {.max_length = -1}), std::invalid_argument);
    Producer<Raw> small(uri, "q", {.max_payload = 1});
    CHECK_THROWS_AS((void)push_bounded(small, {"ab"}, {.max_length = 1}), EncodeError);
    CHECK(redis.keys().empty());
}

TEST_CASE_FIXTURE(Fixture, "a queue of the wrong type is named, and stays as it is") {
    redis.set("q", "x");
    for (const Overflow overflow : {Overflow::refuse, Overflow::drop_oldest}) {
        CHECK(contains(message_of<ReplyError>([&] {
                           (void)push_bounded(producer, {"a"}, {1, overflow});
                       }),
                       "q is a string"));
    }
    CHECK(redis.command({"GET", "q"}).text == "x");
}

TEST_CASE_FIXTURE(Fixture, "a user who may push but not drop does neither") {
    push({"a"});
    redis.command(
        {"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "+@all", "-ltrim"});
    Producer<Raw> own("unix://clerk:open-sesame@" + server().socket_path(), "q");
    CHECK(contains(message_of<ReplyError>([&] {
                       (void)push_bounded(own, {"b"}, {1, Overflow::drop_oldest});
                   }),
                   "NOPERM"));
    CHECK(waiting() == Texts{"a"});
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Fixture,
                  "a user without the right to EVALSHA pushes by EVAL, and needs a right to "
                  "read only where a message is to be dropped") {
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~q", "+eval", "+llen",
                   "+lpush", "+ltrim", "+type"});
    Producer<Raw> own("unix://clerk:open-sesame@" + server().socket_path(), "q");
    CHECK(push_bounded(own, {"a"}, {.max_length = 2}) == BoundedPush{true, 0, 1});
    CHECK(push_bounded(own, {"b"}, {2, Overflow::drop_oldest}) == BoundedPush{true, 0, 2});
    CHECK(push_bounded(own, {"c"}, {.max_length = 2}) == BoundedPush{false, 0, 2});
    const auto drop = [&] { (void)push_bounded(own, {"c"}, {2, Overflow::drop_oldest}); };
    CHECK(contains(message_of<ReplyError>(drop), "NOPERM this user may not run LRANGE on q"));
    CHECK(waiting() == Texts{"a", "b"});
    redis.command({"ACL", "SETUSER", "clerk", "+lrange"});
    drop();
    CHECK(waiting() == Texts{"b", "c"});
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(Fixture, "when memory is full nothing is pushed, and nothing dropped") {
    push({"a"});
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    std::string code;
    try {
        (void)push_bounded(producer, {"b"}, {1, Overflow::drop_oldest});
    } catch (const ReplyError& error) {
        code = error.code();
    }
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(code == "OOM");
    CHECK(waiting() == Texts{"a"});
    CHECK(push_bounded(producer, {"b"}, {1, Overflow::drop_oldest}) == BoundedPush{true, 1, 1});
}

} // namespace bounded_push_test
