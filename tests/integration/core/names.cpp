// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Names of Redis' host that are resolved slowly, which nothing can interrupt, or that have several
// addresses.

#include "support/names.hpp"

#include "integration/core/fault_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace names_test {

using namespace std::chrono_literals;
using namespace orizuru::detail;
using orizuru::AckMode;
using orizuru::ConsumerOptions;
using orizuru::Raw;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::Fd;
using orizuru::test::message_of;
using orizuru::test::patience;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::SeveralAddresses;
using orizuru::test::SlowName;
using orizuru::test::Stopwatch;
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

// ---- Names with several addresses

std::vector<std::string> in_order(std::vector<std::string> addresses) {
    SeveralAddresses::set(std::move(addresses));
    HostAddresses all(std::string(SeveralAddresses::name), 1h, TimePoint::max());
    std::vector<std::string> order;
    while (auto address = all.take()) {
        order.push_back(*std::move(address));
    }
    return order;
}

TEST_CASE("the addresses of a name are tried in the resolver's order, each once, but IPv6 and IPv4 "
          "take turns") {
    CHECK(in_order({"::1", "::2", "127.0.0.1", "127.0.0.2", "127.0.0.1"}) ==
          Texts{"::1", "127.0.0.1", "::2", "127.0.0.2"});
    CHECK(in_order({"127.0.0.1", "127.0.0.2", "127.0.0.3", "::1"}) ==
          Texts{"127.0.0.1", "::1", "127.0.0.2", "127.0.0.3"});
    CHECK(in_order({"::1"}) == Texts{"::1"});
}

/// A host that answers no attempt to connect to this port: its backlog is full.
class SilentHost {
  public:
    SilentHost(const char* host, std::uint16_t port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        REQUIRE(::inet_pton(AF_INET, host, &address.sin_addr) == 1);
        const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
        REQUIRE(::bind(m_listener.get(), generic, sizeof address) == 0);
        REQUIRE(::listen(m_listener.get(), 0) == 0);
        for (Fd& fd : m_waiting) {
            ::connect(fd.get(), generic, sizeof address);
        }
    }

  private:
    static int tcp() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

    Fd m_listener{tcp()};
    Fd m_waiting[3] = {Fd{tcp()}, Fd{tcp()}, Fd{tcp()}};
};

struct SeveralFixture {
    RedisServer server{{}, RedisServer::Listen::tcp}; // at 127.0.0.1 alone
    RedisClient redis{server.plain_uri()};
    SilentHost silent{"127.0.0.3", server.port()};
    std::string uri = "redis://several.test:" + std::to_string(server.port());
};

TEST_CASE_FIXTURE(SeveralFixture,
                  "where addresses of a name refuse or do not answer, the next ones "
                  "are tried within connect_timeout") {
    for (const char* const refusing : {"127.0.0.2", "::1"}) { // "::1": refused, or no IPv6 here
        SeveralAddresses::set({refusing, "127.0.0.1"});
        CHECK(orizuru::Connection(uri).command("", "PING").text == "PONG");
    }
    SeveralAddresses::set({"127.0.0.3", "127.0.0.2", "127.0.0.1"});
    const Stopwatch watch;
    CHECK(orizuru::Connection(uri + "?connect_timeout=1500").command("", "PING").text == "PONG");
    CHECK(watch.elapsed() >= 500ms);
    CHECK(watch.elapsed() < 1500ms);
}

TEST_CASE_FIXTURE(SeveralFixture,
                  "each address of a name is told of when none can be connected to") {
    SeveralAddresses::set({"127.0.0.2", "127.0.0.3"});
    const Stopwatch watch;
    const std::string what = message_of<orizuru::ConnectionError>(
        [&] { orizuru::Connection{uri + "?connect_timeout=300"}; });
    CHECK(contains(what, "127.0.0.2: connecting: Connection refused; "
                         "127.0.0.3: no connection within connect_timeout"));
    CHECK(watch.elapsed() < 600ms);
    SeveralAddresses::set({"127.0.0.3", "127.0.0.2"});
    CHECK(contains(message_of<orizuru::ConnectionError>(
                       [&] { orizuru::Connection{uri + "?connect_timeout=300"}; }),
                   "127.0.0.3: no connection within connect_timeout; "
                   "127.0.0.2: connecting: Connection refused"));
}

TEST_CASE_FIXTURE(SeveralFixture, "a consumer and a worker wait for messages at the address of a "
                                  "name that answers") {
    SeveralAddresses::set({"127.0.0.3", "127.0.0.2", "127.0.0.1"});
    uri += "?connect_timeout=600";
    SUBCASE("a consumer") {
        RawConsumer consumer(uri, "q");
        std::jthread pushing([&] {
            CHECK(eventually([&] {
                return contains(redis.command({"CLIENT", "LIST"}).text, "cmd=blmove");
            }));
            redis.lpush("q", Texts{"a"});
        });
        std::optional<RawGuard> guard;
        SUBCASE("that is asked once") { guard = consumer.next(patience); }
        SUBCASE("that is asked for moments, again and again") {
            CHECK(eventually([&] { return (guard = consumer.next(20ms)).has_value(); }));
        }
        REQUIRE(guard);
        CHECK((*guard)->bytes == "a");
    }
    SUBCASE("a worker") {
        std::stop_source stop;
        orizuru::Worker worker(uri, {.concurrency = 1});
        worker.handle<Raw>("jobs", [&](const Raw&) { stop.request_stop(); });
        orizuru::JobProducer<Raw>(server.plain_uri(), "jobs").push(Raw{"x"});
        worker.run(stop.get_token());
        CHECK(redis.llen("jobs") == 0);
    }
}

} // namespace names_test
