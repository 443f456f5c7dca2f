// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Calls that promise to end within a time-out do so, whatever Redis does.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace timing_test {

using namespace std::chrono_literals;
using orizuru::ConnectionError;
using orizuru::Consumer;
using orizuru::EventKind;
using orizuru::MessageGuard;
using orizuru::test::Diary;
using orizuru::test::DurableServer;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::msgpack_str;
using orizuru::test::OwnServer;
using orizuru::test::patience;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A consumer that has acked one message and fetched another one, which it cannot decode; Redis is
/// dead.
struct Poisoned : DurableServer {
    Diary diary;
    std::optional<Consumer<std::string>> consumer;

    void poison(milliseconds lease) {
        push({msgpack_str("good"), "\xc1\xc1"});
        consumer.emplace(
            uri(100ms), "q",
            orizuru::ConsumerOptions{.lease = lease, .prefetch = 2, .on_event = diary.pen()});
        auto guard = consumer->next(patience);
        REQUIRE(guard);
        REQUIRE(guard->ack());
        server.kill();
    }
};

TEST_CASE_FIXTURE(OwnServer, "next keeps its time when Redis falls silent before the first wait") {
    RawConsumer consumer{server.uri(), "q"};
    server.pause();
    const auto waited = time_of([&] { CHECK_FALSE(consumer.next(100ms)); });
    CHECK(waited >= 100ms);
    CHECK(waited < 1s);
    server.resume();
    push({"a"});
    CHECK(take(consumer).ack());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(OwnServer, "a wait in Redis may last longer than command_timeout") {
    RawConsumer consumer{uri(100ms), "q"};
    const std::string name = consumer.name();
    CHECK_FALSE(consumer.next(500ms));
    CHECK(consumer.name() == name); // a recovery would have changed it
}

TEST_CASE_FIXTURE(OwnServer, "a negative time does not wait, however large it is") {
    // In nanoseconds of 64 bits, the second one would be a century in the future.
    for (const milliseconds timeout : {milliseconds::min(), milliseconds(-13'835'058'055'282)}) {
        RawConsumer consumer{server.uri(), "q"};
        auto next = std::async(std::launch::async, [&] { return consumer.next(timeout); });
        const bool ended = next.wait_for(patience) == std::future_status::ready;
        CHECK(ended);
        if (!ended) {
            consumer.stop();
        }
        CHECK_FALSE(next.get());
        push({"a"});
        std::optional<RawGuard> guard;
        CHECK(eventually([&] { return (guard = consumer.next(timeout)).has_value(); }));
        REQUIRE(guard);
        CHECK(guard->ack());
    }
}

TEST_CASE_FIXTURE(Poisoned, "next keeps its time when it cannot bury a message in an outage") {
    poison(1s);
    for (const milliseconds timeout : {200ms, 0ms}) {
        // Burying may take one more command_timeout.
        CHECK(time_of([&] { CHECK_FALSE(consumer->next(timeout)); }) < 1s);
    }
    CHECK(diary.count(EventKind::decode_failed) == 1);
    server.restart();
    // It is buried in the background, or by the next call, which reports that.
    push({msgpack_str("after")});
    std::optional<MessageGuard<std::string>> guard;
    try {
        guard = consumer->next(patience);
    } catch (const orizuru::DecodeError&) {
        guard = consumer->next(patience);
    }
    REQUIRE(guard);
    CHECK(**guard == "after");
    CHECK(guard->ack());
    CHECK(eventually([this] { return everywhere().empty() && redis.llen(dead) == 1; }));
}

TEST_CASE_FIXTURE(Poisoned, "an outage in which a message cannot be buried ends no iteration") {
    poison(500ms);
    auto iteration = std::async(std::launch::async, [this] {
        Texts seen;
        for (auto& guard : *consumer) {
            seen.push_back(*guard);
            guard.ack();
        }
        return seen;
    });
    // Longer than the lease and command_timeout together: no call waits for a settlement any more.
    CHECK(iteration.wait_for(1s) == std::future_status::timeout);
    server.restart();
    push({msgpack_str("after")});
    CHECK(eventually([this] { return everywhere().empty() && redis.llen(dead) == 1; }));
    consumer->stop();
    CHECK(iteration.get() == Texts{"after"});
    CHECK(diary.count(EventKind::decode_failed) == 1);
}

TEST_CASE_FIXTURE(Poisoned, "stop ends a next that cannot bury a message in an outage") {
    poison(3s);
    auto next = std::async(std::launch::async, [this] { return consumer->next(patience); });
    CHECK(next.wait_for(200ms) == std::future_status::timeout);
    const auto waited = time_of([&] {
        consumer->stop();
        CHECK_FALSE(next.get());
    });
    CHECK(waited < 200ms);
    server.restart();
}

TEST_CASE_FIXTURE(OwnServer, "the last guard's destructor waits for one command_timeout, not two") {
    std::optional<RawGuard> guard;
    push({"a"});
    {
        RawConsumer consumer{uri(600ms), "q"};
        guard = consumer.next(patience);
        REQUIRE(guard);
    }
    SUBCASE("when Redis is paused") { server.pause(); }
    SUBCASE("when Redis is gone") { server.kill(); }
    CHECK(time_of([&] { guard.reset(); }) < 1s);
}

TEST_CASE_FIXTURE(OwnServer, "a consumer's constructor keeps connect_timeout when the greeting is "
                             "answered late and the registration never") {
    const FakeServer fake{[begun = steady_clock::now()](const Texts& argv) {
                              if (argv.at(0) != "PING") {
                                  return std::optional<std::string>(""); // silence
                              }
                              // As slow as possible without being too slow.
                              CHECK(
                                  eventually([=] { return steady_clock::now() - begun >= 500ms; }));
                              return std::optional<std::string>("+PONG\r\n");
                          },
                          server.socket_path()};
    const auto waited = time_of([&] {
        CHECK_THROWS_AS(RawConsumer(fake.uri() + "?connect_timeout=600&command_timeout=5000", "q"),
                        ConnectionError);
    });
    CHECK(waited >= 600ms);
    CHECK(waited < 1s);
}

TEST_CASE_FIXTURE(OwnServer, "a consumer's constructor waits for a Redis that loads its data") {
    push({"a"});
    const FakeServer fake{
        [ready_at = steady_clock::now() + 300ms](const Texts&) -> std::optional<std::string> {
            return steady_clock::now() < ready_at
                       ? "-LOADING Redis is loading the dataset in memory\r\n"
                       : FakeServer::pass;
        },
        server.socket_path()};
    std::optional<RawConsumer> consumer;
    REQUIRE_NOTHROW(consumer.emplace(fake.uri(), "q"));
    CHECK(take(*consumer).ack());
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(OwnServer, "a consumer's constructor waits for a Redis that loads its data no "
                             "longer than connect_timeout") {
    const FakeServer fake{[](const Texts&) -> std::optional<std::string> {
        return "-LOADING Redis is loading the dataset in memory\r\n";
    }};
    const auto waited = time_of([&] {
        CHECK_THROWS_AS(RawConsumer(fake.uri() + "?connect_timeout=300", "q"), ConnectionError);
    });
    CHECK(waited >= 300ms);
    CHECK(waited < 1s);
}

} // namespace timing_test
