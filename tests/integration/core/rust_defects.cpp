// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The defects of the Rust original. Each has a test that fails when the defect is put back.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace rust_defects_test {

using orizuru::Consumer;
using orizuru::DecodeError;
using orizuru::GarbageCollector;
using orizuru::MessageGuard;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::is_dead_entry;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::milliseconds;

/// Longer than a healthy run needs: a failing test must not hang.

struct Original : QueueFixture {
    GarbageCollector collector{uri, "q", {.grace = milliseconds(0)}};
};

TEST_CASE_FIXTURE(Original,
                  "1: a collector returns rejected messages to the source, to be served") {
    Consumer<Raw> consumer(uri, "q");
    push({"a"});
    CHECK(consumer.next(patience).value().reject());
    CHECK(collector.collect().unacked == 1);
    CHECK(waiting() == Texts{"a"});
    CHECK(held().empty());
    auto again = consumer.next(patience);
    REQUIRE(again);
    CHECK((*again)->bytes == "a");
}

TEST_CASE_FIXTURE(Original, "2: the messages of a killed consumer come back") {
    push({"a", "b", "c", "d", "e"});
    const pid_t child = ::fork();
    if (child == 0) {
        Consumer<Raw> consumer(uri, "q", {.lease = milliseconds(100), .prefetch = 2});
        const auto guard = consumer.next(patience);
        REQUIRE(guard);
        ::pause();
        ::_exit(0);
    }
    REQUIRE(child > 0);
    REQUIRE(eventually([this] { return redis.llen("q") == 1; }));
    ::kill(child, SIGKILL);
    orizuru::test::wait_for(child);
    CHECK(held() == Texts{"a", "b", "c", "d"});
    CHECK(eventually([this] { return collector.collect().reclaimed == 4; }));
    CHECK(waiting() == Texts{"a", "b", "c", "d", "e"});
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Original, "3: stop from another thread ends a wait that would last for ever") {
    Consumer<Raw> consumer(uri, "q");
    std::jthread stopper([&] {
        CHECK(somebody_waits());
        consumer.stop();
    });
    std::optional<MessageGuard<Raw>> guard;
    CHECK(time_of([&] { guard = consumer.next(); }) < milliseconds(2500));
    CHECK_FALSE(guard);
    CHECK(consumer.stopped());
    push({"a"});
    CHECK(waiting() == Texts{"a"});
}

TEST_CASE_FIXTURE(Original,
                  "4: a message that cannot be decoded does not stay in processing for ever") {
    Consumer<int> consumer(uri, "q");
    push({"\xc1", "\x05"});
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), DecodeError);
    CHECK(held().empty());
    CHECK(redis.llen(dead) == 1);
    CHECK(*consumer.next(patience).value() == 5);
}

TEST_CASE_FIXTURE(Original, "5: an ack that failed is not counted as done, and can be repeated") {
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">pw", "~*", "&*", "+@all"});
    const std::string clerk = "unix://clerk:pw@" + orizuru::test::server().socket_path();
    Consumer<Raw> consumer(clerk, "q");
    push({"a", "b"});
    auto first = consumer.next(patience);
    auto second = consumer.next(patience);
    REQUIRE((first && second));
    redis.command({"ACL", "SETUSER", "clerk", "-ltrim", "-lset"});
    CHECK_THROWS_AS(first->ack(), ReplyError);
    CHECK_THROWS_AS(second->ack(), ReplyError);
    CHECK_FALSE(first->settled());
    redis.command({"ACL", "SETUSER", "clerk", "+ltrim", "+lset"});
    CHECK(held() == Texts{"a", "b"});
    CHECK(first->ack());
    CHECK(held() == Texts{"b"});
    second.reset(); // still unsettled: its destructor rejects
    CHECK(rejected() == Texts{"b"});
}

TEST_CASE_FIXTURE(Original, "5: an ack of a message that was reclaimed says so") {
    Consumer<Raw> consumer(uri, "q");
    push({"a"});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    forget_heartbeat(only_id());
    REQUIRE(collector.collect().reclaimed == 1);
    CHECK_FALSE(guard->ack());
    CHECK(waiting() == Texts{"a"});
}

TEST_CASE_FIXTURE(Original, "6: a push of a message that was reclaimed makes no second one") {
    Consumer<Raw> consumer(uri, "q");
    push({"a"});
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    forget_heartbeat(only_id());
    REQUIRE(collector.collect().reclaimed == 1);
    CHECK_FALSE(guard->push("other"));
    CHECK_FALSE(redis.exists("other"));
    CHECK(waiting() == Texts{"a"});
}

TEST_CASE_FIXTURE(Original, "7: one name on two sources does not mix their messages") {
    Consumer<Raw> here(uri, "q", {.name = "mill"});
    Consumer<Raw> there(uri, "other", {.name = "mill"});
    push({"a", "b"});
    redis.lpush("other", "x", "y");
    auto from_here = here.next(patience);
    auto from_there = there.next(patience);
    REQUIRE((from_here && from_there));
    CHECK(held() == Texts{"a"});
    CHECK(redis.llen("orizuru:{other}:processing:" + there.name()) == 2);
    CHECK(from_here->reject());
    CHECK(from_there->reject());
    CHECK(redis.lrange(unack) == Texts{"a"});
    CHECK(redis.lrange("orizuru:{other}:unack") == Texts{"x"});
    collector.collect();
    CHECK(waiting() == Texts{"b", "a"});
    CHECK(redis.lrange("other") == Texts{"y"});
}

TEST_CASE_FIXTURE(Original,
                  "7: a consumer shares no list with a former one of its name, nor orphans it") {
    add_dead_consumer("mill", {"a"});
    Consumer<Raw> consumer(uri, "q", {.name = "mill"});
    CHECK(consumer.name() != "mill");
    CHECK(held(consumer.name()).empty());
    CHECK(collector.collect().reclaimed == 1);
    CHECK(consumer.next(patience).value().ack());
    const std::string first = consumer.name();
    const Consumer<Raw> again(uri, "q", {.name = "mill"});
    CHECK(again.name() != first);
}

TEST_CASE_FIXTURE(Original,
                  "8: a consumer that leaves with messages in hand stays in the registry") {
    push({"a", "b"});
    std::optional<MessageGuard<Raw>> guard;
    {
        Consumer<Raw> consumer(uri, "q", {.prefetch = 2});
        guard = consumer.next(patience);
    }
    REQUIRE(ids().size() == 1);
    CHECK(held() == Texts{"a"});
    forget_heartbeat(only_id());
    CHECK(collector.collect().reclaimed == 1);
    CHECK(waiting() == Texts{"a", "b"});
    CHECK_FALSE(guard->ack());
}

TEST_CASE_FIXTURE(Original,
                  "8: consumers that come and go leave no heartbeats, and nothing for ever") {
    for (int i = 0; i < 10; ++i) {
        push({"a"});
        Consumer<Raw> consumer(uri, "q");
        CHECK(consumer.next(patience).value().ack());
    }
    add_dead_consumer("dead", {"a"});
    collector.collect();
    CHECK(redis.del("q") == 1);
    for (const std::string& key : redis.keys()) {
        CAPTURE(key);
        CHECK(redis.command({"PTTL", key}).integer > 0);
        CHECK_FALSE(contains(key, "heartbeat"));
    }
}

TEST_CASE_FIXTURE(Original, "9: an entry of the dead list has its reason and its time") {
    Consumer<int> consumer(uri, "q");
    push({"\x05"});
    const auto since = server_ms();
    CHECK(consumer.next(patience).value().bury("the file is gone"));
    CHECK(
        is_dead_entry(redis.lrange(dead).front(), "\x05", "the file is gone", since, server_ms()));
}

TEST_CASE_FIXTURE(Original,
                  "9: a message that kills its consumers is counted, and given up at last") {
    GarbageCollector strict(uri, "q", {.max_recoveries = 2, .grace = milliseconds(0)});
    push({"a", "b"});
    for (int death = 1; death <= 3; ++death) {
        Consumer<Raw> consumer(uri, "q", {.prefetch = 2});
        const auto guard = consumer.next(patience);
        REQUIRE(guard);
        REQUIRE(guard);
        CHECK((*guard)->bytes == "a");
        forget_heartbeat(consumer.name());
        CHECK(strict.collect().consumers == 1);
    }
    CHECK(redis.llen(dead) == 1);
    CHECK(waiting() == Texts{"b"});
}

TEST_CASE_FIXTURE(Original,
                  "10: a rejected message is not served again before a collector's pass") {
    Consumer<Raw> consumer(uri, "q");
    push({"a"});
    CHECK(consumer.next(patience).value().reject());
    CHECK_FALSE(consumer.next(milliseconds(0)));
    CHECK_FALSE(consumer.next(milliseconds(20)));
    CHECK(collector.collect().unacked == 1);
    CHECK(consumer.next(patience));
}

TEST_CASE_FIXTURE(Original, "11: a failed fetch keeps its cause") {
    Consumer<Raw> consumer(uri, "q");
    redis.command({"SADD", "q", "x"});
    try {
        static_cast<void>(consumer.next());
        FAIL_CHECK("no exception");
    } catch (const ReplyError& error) {
        CHECK(error.code() == "WRONGTYPE");
    }
}

TEST_CASE_FIXTURE(Original, "11: a consumer connects again") {
    Consumer<Raw> consumer(uri, "q");
    for (int i = 0; i < 5; ++i) {
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        push({"a"});
        CHECK(consumer.next(patience).value().ack());
    }
    std::jthread killer([this] {
        CHECK(somebody_waits());
        redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        CHECK(somebody_waits());
        push({"b"});
    });
    CHECK(consumer.next(patience).value()->bytes == "b");
}

TEST_CASE_FIXTURE(Original, "12: when one of two equal messages is settled, that one goes") {
    Consumer<Raw> consumer(uri, "q", {.prefetch = 5});
    push({"=", "a", "=", "b", "="});
    std::vector<MessageGuard<Raw>> guards;
    for (int i = 0; i < 5; ++i) {
        guards.push_back(consumer.next(patience).value());
    }
    CHECK(guards[2].ack());
    CHECK(held() == Texts{"=", "a", "b", "="});
    CHECK(guards[4].push("other"));
    CHECK(held() == Texts{"=", "a", "b"});
    CHECK(guards[0].reject());
    CHECK(held() == Texts{"a", "b"});
}

// 13: the README's signatures did not match the code. Here are ours.
static_assert(std::is_same_v<decltype(std::declval<Producer<Raw>&>().push(std::declval<Raw>())),
                             std::uint64_t>);
static_assert(std::is_same_v<
              decltype(std::declval<Producer<Raw>&>().push_all(std::declval<std::vector<Raw>&>())),
              std::uint64_t>);
static_assert(std::is_same_v<decltype(std::declval<Consumer<Raw>&>().next()),
                             std::optional<MessageGuard<Raw>>>);
static_assert(std::is_same_v<decltype(std::declval<Consumer<Raw>&>().next(milliseconds())),
                             std::optional<MessageGuard<Raw>>>);
static_assert(std::is_same_v<decltype(std::declval<Consumer<Raw>&>().next(std::stop_token())),
                             std::optional<MessageGuard<Raw>>>);
static_assert(
    std::is_same_v<decltype(std::declval<Consumer<Raw>&>().next(std::stop_token(), milliseconds())),
                   std::optional<MessageGuard<Raw>>>);
static_assert(
    std::is_same_v<decltype(std::declval<MessageGuard<Raw>&>().push(std::string_view())), bool>);

} // namespace rust_defects_test
