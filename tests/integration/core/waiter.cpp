// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The wait in Redis, in orders of events that threads and servers rarely meet.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/engine.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <string>
#include <utility>

namespace waiter_test {

using namespace orizuru::detail;
using namespace std::chrono_literals;
using orizuru::Keys;
using orizuru::Reply;
using orizuru::test::eventually;
using orizuru::test::FakeServer;
using orizuru::test::OwnServer;
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
        : channels(uri, registered_mirror(), EventQueue("q", {}), deadline) {
        Channels::Lock lock(channels);
        fetch.start(lock, deadline); // connects
        fetch.start(lock, deadline); // composes
        REQUIRE(mirror.blocked());
    }

    TimePoint deadline = deadline_in(10s);
    Channels channels;
    Mirror& mirror = channels.mirror;
    Wake wake;
    Waiter fetch{channels, wake};
};

TEST_CASE_FIXTURE(OwnServer,
                  "a message that a wait in Redis brings after an adoption does not count") {
    Waiting waiting(server.uri());
    const TimePoint deadline = waiting.deadline;
    Channels& channels = waiting.channels;
    Mirror& mirror = waiting.mirror;
    Waiter& fetch = waiting.fetch;
    auto reading = std::async(std::launch::async, [&] {
        Channels::Lock lock(channels);
        fetch.read(lock, deadline);
    });
    REQUIRE(somebody_waits());
    {
        // The reply comes in, and before it is read, the list is adopted with its message.
        const Channels::Lock lock(channels);
        const std::string list = mirror.keys().processing(mirror.identity().id);
        push({"a"});
        REQUIRE(eventually([&] { return redis.llen(list) == 1; }));
        channels.begin_recovery("a doubt");
        std::string unsent;
        mirror.send_adopt(unsent);
        const Reply payloads{Type::array, 0, {}, {{Type::string, 0, "a", {}}}};
        mirror.on_adopt({Type::array, 0, {}, {{Type::string, 0, {}, {}}, payloads}});
        REQUIRE(mirror.messages().size() == 1);
    }
    reading.get();
    const Channels::Lock lock(channels);
    CHECK(mirror.messages().size() == 1);
    CHECK(mirror.state() == Mirror::State::running); // and nothing is in doubt
}

TEST_CASE("a wait in Redis begins when the marker behind the one before is answered, no sooner") {
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
    Channels& channels = waiting.channels;
    Mirror& mirror = waiting.mirror;
    Waiter& fetch = waiting.fetch;
    Channels::Lock lock(channels);
    const auto ended = [&] {
        fetch.read(lock, deadline);
        return !mirror.blocked();
    };
    REQUIRE(eventually(ended));
    REQUIRE(mirror.messages().size() == 1);

    fetch.start(lock, deadline); // reads
    REQUIRE_FALSE(mirror.blocked());
    fetch.start(lock, deadline); // composes
    CHECK(mirror.blocked());
    CHECK(eventually(ended));
    CHECK(mirror.messages().size() == 2);
    CHECK(mirror.state() == Mirror::State::running);
}

} // namespace waiter_test
