// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The wait in Redis, in orders of events that threads and servers rarely meet.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/consumer/link.hpp>
#include <orizuru/detail/consumer/waiter.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

namespace waiter_test {

using namespace orizuru::detail;
using namespace std::chrono_literals;
using orizuru::EventKind;
using orizuru::Keys;
using orizuru::Reply;
using orizuru::test::Diary;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::OwnServer;
using orizuru::test::RawConsumer;
using orizuru::test::Texts;
using Type = Reply::Type;

Mirror registered_mirror() {
    Mirror mirror(Keys("q"), 30s, [] { return make_identity("w"); });
    std::string unsent;
    mirror.send_start(unsent);
    mirror.on_start({Type::integer, 1, {}, {}});
    return mirror;
}

/// A wait in Redis, sent or about to be.
struct Waiting {
    explicit Waiting(const std::string& uri)
        : lane(
              std::make_shared<Link>(uri, deadline), [] { return registered_mirror(); },
              EventQueue("q", {})) {
        Lane::Lock lock(lane.mutex());
        start(lock);
    }
    void start(Lane::Lock& lock) {
        while (!mirror.blocked() && Clock::now() < deadline) {
            if (Awaited awaited; !waiter.start(lock, deadline, awaited)) {
                wait_ready(awaited.fd, awaited.events, nullptr, std::min(deadline, awaited.until));
            }
        }
        REQUIRE(mirror.blocked());
    }

    TimePoint deadline = deadline_in(10s);
    Lane lane;
    const Mirror& mirror = lane.mirror();
    Wake wake;
    Waiter waiter{lane, wake};
};

TEST_CASE_FIXTURE(OwnServer,
                  "a message that a wait in Redis brings after an adoption does not count") {
    Waiting waiting(server.uri());
    const TimePoint deadline = waiting.deadline;
    Lane& lane = waiting.lane;
    const Mirror& mirror = waiting.mirror;
    Waiter& waiter = waiting.waiter;
    auto reading = std::async(std::launch::async, [&] {
        Lane::Lock lock(lane.mutex());
        waiter.read(lock, deadline);
    });
    REQUIRE(somebody_waits());
    {
        // The reply comes in, and before it is read, the list is adopted with its message.
        Lane::Lock lock(lane.mutex());
        const std::string list = mirror.keys().processing(mirror.identity().id);
        push({"a"});
        REQUIRE(eventually([&] { return redis.llen(list) == 1; }));
        lane.begin_recovery("a doubt");
        REQUIRE(lane.drive(lock, deadline, nullptr, [&] { return lane.mirror().running(); }));
        REQUIRE(mirror.messages().size() == 1);
    }
    reading.get();
    const Lane::Lock lock(lane.mutex());
    CHECK(mirror.messages().size() == 1);
    CHECK(lane.mirror().running()); // and nothing is in doubt
}

TEST_CASE("a marker behind a wait in Redis is due until it is answered, then the next may begin") {
    int waits = 0;
    const FakeServer fake{[&](const Texts& argv) -> std::string {
        if (argv.at(0) == "BLMOVE") {
            // The first was postponed when it was unblocked, and runs all the same.
            return ++waits == 1 ? "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n$1\r\na\r\n"
                                : "$1\r\nb\r\n";
        }
        return argv.at(0) == "CLIENT" ? ":7\r\n" : "+PONG\r\n";
    }};
    Waiting waiting(fake.uri());
    const TimePoint deadline = waiting.deadline;
    Lane& lane = waiting.lane;
    const Mirror& mirror = waiting.mirror;
    Waiter& waiter = waiting.waiter;
    Lane::Lock lock(lane.mutex());
    const auto ended = [&] {
        waiter.read(lock, deadline);
        return !mirror.blocked();
    };
    REQUIRE(eventually(ended));
    REQUIRE(mirror.messages().size() == 1);

    REQUIRE(waiter.marker_due());
    CHECK(eventually([&] {
        waiter.read(lock, deadline);
        return !waiter.marker_due();
    }));
    REQUIRE_FALSE(mirror.blocked());
    waiting.start(lock);
    CHECK(eventually(ended));
    CHECK(mirror.messages().size() == 2);
    CHECK(lane.mirror().running());
}

TEST_CASE_FIXTURE(OwnServer, "the user hears that the connection that waits came back") {
    const Diary diary;
    RawConsumer consumer{server.uri(), "q", {.on_event = diary.pen()}};
    const std::string name = consumer.name();
    auto next = take_in_background(consumer);
    REQUIRE(somebody_waits());
    const std::string clients = redis.command({"CLIENT", "LIST"}).text;
    const std::size_t waiting = clients.rfind("id=", clients.find("cmd=blmove")) + 3;
    redis.command(
        {"CLIENT", "KILL", "ID", clients.substr(waiting, clients.find(' ', waiting) - waiting)});
    REQUIRE(eventually([&] { return consumer.name() != name; }));
    CHECK(eventually([&] { return diary.count(EventKind::reconnected) == 1; }));
    push({"a"});
    CHECK(next.get()->ack());
}

} // namespace waiter_test
