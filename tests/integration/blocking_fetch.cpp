// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The wait in Redis beside a recovery, in an order that threads would meet once in a long while.

#include "integration/fault_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/blocking_fetch.hpp>
#include <orizuru/detail/channels.hpp>
#include <orizuru/detail/event_queue.hpp>
#include <orizuru/detail/identity.hpp>
#include <orizuru/detail/wake.hpp>
#include <orizuru/detail/window.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <string>
#include <utility>

namespace {

using namespace orizuru::detail;
using namespace std::chrono_literals;
using orizuru::Keys;
using orizuru::Reply;
using orizuru::test::eventually;
using orizuru::test::OwnServer;
using Type = Reply::Type;

Window registered_window() {
    Window window(Keys("q"), 30s, [] { return make_identity("w"); });
    std::string unsent;
    window.send_start(unsent);
    window.on_start({Type::integer, 1, {}, {}});
    return window;
}

} // namespace

TEST_CASE_FIXTURE(OwnServer, "what a wait in Redis brings after an adoption does not count") {
    const TimePoint deadline = deadline_in(10s);
    Channels channels(server.uri(), registered_window(), EventQueue("q", {}), deadline);
    Window& window = channels.window;
    const Wake wake;
    BlockingFetch fetch(channels, wake);
    {
        Channels::Lock lock(channels);
        fetch.start(lock, deadline); // connects
        fetch.start(lock, deadline); // composes
        REQUIRE(window.blocked());
    }
    auto reading = std::async(std::launch::async, [&] {
        Channels::Lock lock(channels);
        fetch.read(lock, deadline);
    });
    REQUIRE(somebody_waits());
    {
        // The reply comes in, and before it is looked at, the list is adopted with its message.
        const Channels::Lock lock(channels);
        const std::string list = window.keys().processing(window.identity().id);
        push({"a"});
        REQUIRE(eventually([&] { return redis.llen(list) == 1; }));
        channels.begin_recovery("a doubt");
        std::string unsent;
        window.send_adopt(unsent);
        const Reply payloads{Type::array, 0, {}, {{Type::string, 0, "a", {}}}};
        window.on_adopt({Type::array, 0, {}, {{Type::string, 0, {}, {}}, payloads}});
        REQUIRE(window.messages().size() == 1);
    }
    reading.get();
    const Channels::Lock lock(channels);
    CHECK(window.messages().size() == 1);
}
