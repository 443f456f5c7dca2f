// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Ends consumers while the name of Redis' host is resolved slowly, which nothing can interrupt.

#include "support/slow_names.hpp"

#include "integration/core/fault_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>

namespace slow_names_test {

using namespace std::chrono_literals;
using namespace orizuru::detail;
using orizuru::AckMode;
using orizuru::ConsumerOptions;
using orizuru::test::eventually;
using orizuru::test::patience;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::SlowName;
using orizuru::test::Texts;
using orizuru::test::time_of;

struct Fixture {
    ~Fixture() { SlowName::take(0ms); }

    /// Closes the consumer's connections.
    void cut() { redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); }
    bool nobody_left() { return redis.keys("orizuru:{q}:heartbeat:*").empty(); }

    RedisServer server{{}, RedisServer::Listen::tcp};
    RedisClient redis{server.plain_uri()};
    std::string uri = "redis://" + std::string(SlowName::name) + ":" +
                      std::to_string(server.port()) + "?command_timeout=300";
};

TEST_CASE_FIXTURE(Fixture, "a stopped consumer begins to resolve no name in next or in its "
                           "destructor") {
    constexpr auto slow = 700ms;
    std::optional<RawConsumer> consumer;
    consumer.emplace(uri, "q", ConsumerOptions{.lease = 3s});
    std::optional<RawGuard> got;
    std::thread waiting([&] { got = consumer->next(); });
    const std::thread::id next = waiting.get_id();
    REQUIRE(eventually([&] {
        return orizuru::test::contains(redis.command({"CLIENT", "LIST"}).text, "cmd=blmove");
    }));
    SlowName::take(slow);
    const std::size_t before = SlowName::begun_by(next);
    cut();
    std::size_t more = 0;
    SUBCASE("that resolves it") {
        REQUIRE(eventually([&] { return SlowName::begun_by(next) > before; }));
    }
    SUBCASE("that may be about to") { more = 1; }
    std::size_t at_stop = 0;
    CHECK(time_of([&] {
              consumer->stop();
              at_stop = SlowName::begun_by(next);
              waiting.join();
          }) < slow + 400ms);
    CHECK_FALSE(got);
    CHECK(SlowName::begun_by(next) <= at_stop + more);
    const std::size_t by_this = SlowName::begun_by(std::this_thread::get_id());
    // The heartbeat may be resolving it.
    CHECK(time_of([&] { consumer.reset(); }) < 300ms + slow + 400ms);
    CHECK(SlowName::begun_by(std::this_thread::get_id()) == by_this);
}

TEST_CASE_FIXTURE(Fixture,
                  "a consumer that ends when Redis has closed its idle connection acks and "
                  "leaves all the same, while names are resolved in time") {
    const std::thread::id self = std::this_thread::get_id();
    redis.lpush("q", Texts{"a", "b"});
    std::atomic<bool> beat{false};
    std::optional<RawConsumer> consumer;
    consumer.emplace(
        uri + "0", "q",
        ConsumerOptions{.lease = 3s, .prefetch = 10, .ack = AckMode::deferred, .on_beat = [&] {
                            beat = true;
                        }});
    REQUIRE(eventually([&] { return beat.load(); })); // the next is in a second
    std::optional<RawGuard> guard = consumer->next(patience);
    REQUIRE(guard);
    CHECK(guard->ack());
    guard.reset();
    CHECK(consumer->size() == 0);
    SlowName::take(20ms);
    const std::string clients = redis.command({"CLIENT", "LIST"}).text;
    const std::size_t link = clients.rfind("id=", clients.find("cmd=llen")) + 3;
    redis.command({"CLIENT", "KILL", "ID", clients.substr(link, clients.find(' ', link) - link)});
    const std::size_t by_this = SlowName::begun_by(self);
    SUBCASE("that was stopped") {
        consumer->stop();
        CHECK_FALSE(consumer->next());
    }
    SUBCASE("that was not") {}
    CHECK(time_of([&] { consumer.reset(); }) < 500ms);
    CHECK(SlowName::begun_by(self) == by_this);
    CHECK(nobody_left());
    CHECK(redis.lrange("q") == Texts{"b"});
}

TEST_CASE("a thread that was woken begins to resolve no name") {
    const Wake wake;
    wake.signal();
    const std::size_t before = SlowName::begun();
    const orizuru::Endpoint endpoint("redis://" + std::string(SlowName::name));
    CHECK_THROWS_AS(static_cast<void>(Stream::make(endpoint, deadline_in(10s), &wake)), GivenUp);
    CHECK(SlowName::begun() == before);
}

} // namespace slow_names_test
