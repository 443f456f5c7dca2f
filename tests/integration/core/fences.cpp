// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The fence in place of a consumer's list stays for ten minutes where no request of the consumer
// can come late any more, and for seven days where one can. That one meets it.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <utility>

namespace fences_test {

using namespace std::chrono_literals;
using orizuru::test::eventually;
using orizuru::test::OwnServer;
using orizuru::test::Proxy;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::Texts;
using Cut = Proxy::Cut;
using Direction = Proxy::Direction;

struct Fences : OwnServer {
    static std::string list(const std::string& id) { return "orizuru:{q}:processing:" + id; }

    /// How long the fence of this consumer stays; 0 without one.
    std::chrono::milliseconds time_of(const std::string& id) {
        const bool fence = redis.type(list(id)) == "string";
        return fence ? std::chrono::milliseconds(redis.command({"PTTL", list(id)}).integer) : 0ms;
    }
    bool is_short(const std::string& id) {
        const auto time = time_of(id);
        return time > 0ms && time <= 10min;
    }
    bool is_long(const std::string& id) {
        const auto time = time_of(id);
        return time > 6 * 24h && time <= 7 * 24h;
    }
    std::int64_t evals() {
        const std::string text = redis.command({"INFO", "commandstats"}).text;
        const auto at = text.find("cmdstat_eval:calls=");
        return at == std::string::npos ? 0 : std::stoll(text.substr(text.find('=', at) + 1));
    }
    void add_user(const std::string& name, const Texts& rights) {
        Texts user{"ACL", "SETUSER", name, "on", ">secret", "~*", "+@all"};
        user.insert(user.end(), rights.begin(), rights.end());
        redis.command(user);
    }
    static std::string uri_of(const std::string& user, const std::string& socket) {
        return "unix://" + user + ":secret@" + socket;
    }
    /// Ends the connection that waits for a message.
    void kill_waiter() {
        const std::string clients = redis.command({"CLIENT", "LIST"}).text;
        const auto line = clients.rfind('\n', clients.find("cmd=blmove"));
        const auto id = clients.find("id=", line == std::string::npos ? 0 : line) + 3;
        redis.command({"CLIENT", "KILL", "ID", clients.substr(id, clients.find(' ', id) - id)});
    }
    /// Adopts its list once more; the name that it had is returned.
    template <class Break>
    std::string former_name(RawConsumer& consumer, Break end_waiter) {
        auto next = take_in_background(consumer);
        REQUIRE(somebody_waits());
        std::string before = consumer.name();
        end_waiter();
        REQUIRE(eventually([&] { return consumer.name() != before; }));
        push({"a"});
        auto guard = next.get();
        REQUIRE(guard);
        CHECK(guard->ack());
        CHECK(is_empty());
        CHECK(redis.command({"GET", list(before)}).text.starts_with("adopted "));
        return before;
    }

    /// Waits for the first beat of a consumer; returns how many bytes have passed up to it.
    std::uint64_t wait_for_beat(const Proxy& proxy, std::int64_t before = 0) {
        REQUIRE(eventually([&] { return evals() >= before + 2; })); // START, too
        return proxy.bytes(beats, Direction::to_server);
    }

    static constexpr std::size_t beats = 1; ///< the number of their connection: 0 is the link's
    // No beat is on its way while a test stops a consumer.
    static constexpr std::chrono::milliseconds lease = 1h;
};

TEST_CASE_FIXTURE(Fences, "a consumer that leaves with nothing on its way has a fence for ten "
                          "minutes") {
    std::optional<RawConsumer> consumer;
    consumer.emplace(server.uri(), "q", orizuru::ConsumerOptions{.lease = lease});
    const std::string id = consumer->name();
    SUBCASE("without a fetch") {}
    SUBCASE("after a settlement") {
        push({"a"});
        CHECK(take(*consumer).ack());
    }
    SUBCASE("with a message that it has not handed out") {
        RawConsumer hoarding{server.uri(), "q", {.lease = lease, .prefetch = 2}};
        const std::string other = hoarding.name();
        push({"a", "b"});
        CHECK(take(hoarding).ack());
        hoarding.stop();
        CHECK_FALSE(hoarding.next());
        CHECK(is_short(other));
        CHECK(redis.lrange("q") == Texts{"b"});
    }
    SUBCASE("while it waits") {
        auto next = take_in_background(*consumer);
        REQUIRE(somebody_waits());
        consumer->stop();
        CHECK_FALSE(next.get());
    }
    SUBCASE("behind a wait whose time was over") { CHECK_FALSE(consumer->next(20ms)); }
    consumer.reset();
    CHECK(is_short(id));
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fences, "a consumer that leaves while its wait cannot be ended has a fence for "
                          "seven days, which the wait meets") {
    add_user("patient", {"-client|unblock"});
    Proxy proxy(server.socket_path());
    std::string id;
    {
        RawConsumer consumer{uri_of("patient", proxy.socket_path()), "q", {.lease = lease}};
        id = consumer.name();
        REQUIRE(eventually([&] {
            CHECK_FALSE(consumer.next(10ms));
            return waits_now();
        }));
        proxy.swallow_fin();
    }
    CHECK(is_long(id));
    CHECK(waits_now());
    push({"a"});
    CHECK(everywhere() == Texts{"a"});
    CHECK(redis.lrange("q") == Texts{"a"});
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fences, "a consumer that leaves while a beat is on its way has a fence for seven "
                          "days, which the beat meets") {
    Proxy proxy(server.socket_path(), 1500ms);
    std::string id;
    std::uint64_t passed = 0;
    {
        const RawConsumer consumer{proxy.uri(), "q", {.lease = 600ms}};
        id = consumer.name();
        passed = wait_for_beat(proxy);
        proxy.cut_after(Direction::to_server, passed, Cut::delay, beats);
        REQUIRE(eventually([&] { return proxy.was_cut(beats, Direction::to_server); }));
    }
    CHECK(is_long(id));
    CHECK(eventually([&] { return proxy.bytes(beats, Direction::to_server) > passed; }));
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fences, "a lost beat makes the fence of its consumer one for seven days") {
    Proxy proxy(server.socket_path());
    std::string id;
    {
        const RawConsumer consumer{proxy.uri(), "q", {.lease = 600ms}};
        id = consumer.name();
        proxy.cut_after(Direction::to_server, wait_for_beat(proxy), Cut::silence, beats);
        // The next one comes on another connection.
        REQUIRE(eventually([&] { return proxy.accepted() > beats + 1; }));
        const std::int64_t before = evals();
        REQUIRE(eventually([&] { return evals() > before; }));
        CHECK(consumer.name() == id);
    }
    CHECK(is_long(id));
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fences,
                  "a beat whose connection was closed before it was sent is not on its way") {
    // Where the break meets a beat, that one is.
    CHECK(eventually([&] {
        Proxy proxy(server.socket_path());
        const std::int64_t at_first = evals();
        std::string id;
        {
            const RawConsumer consumer{proxy.uri(), "q", {.lease = 600ms}};
            id = consumer.name();
            wait_for_beat(proxy, at_first);
            proxy.break_all();
            const std::int64_t before = evals();
            REQUIRE(eventually([&] { return evals() > before; }));
            CHECK(consumer.name() == id);
        }
        CHECK(nobody_left());
        return is_short(id);
    }));
}

TEST_CASE_FIXTURE(Fences, "a consumer that is leaving beats no more") {
    // Else a beat that comes later than its short fence ends would register it again.
    REQUIRE(eventually([&] {
        Proxy proxy(server.socket_path(), 300ms);
        std::optional<RawConsumer> consumer;
        consumer.emplace(proxy.uri(), "q", orizuru::ConsumerOptions{.lease = 150ms});
        const std::string id = consumer->name();
        proxy.cut_after(Direction::to_client, proxy.bytes(0, Direction::to_client), Cut::delay, 0);
        auto gone = std::async(std::launch::async, [&] { consumer.reset(); });
        CHECK(eventually([&] { return time_of(id) > 0ms; }));
        if (!is_short(id)) {
            return false; // a beat was on its way before
        }
        const std::int64_t before = evals();
        gone.get();
        CHECK(evals() == before);
        return true;
    }));
}

TEST_CASE_FIXTURE(Fences, "a consumer whose waiting connection Redis knows to be gone leaves a "
                          "fence for ten minutes behind") {
    RawConsumer consumer{server.uri(), "q", {.lease = lease}};
    CHECK(is_short(former_name(consumer, [&] { kill_waiter(); })));
    // Again, with another connection.
    CHECK(is_short(former_name(consumer, [&] { kill_waiter(); })));
}

TEST_CASE_FIXTURE(Fences, "a consumer whose waiting connection Redis still has leaves a fence for "
                          "seven days behind, which the wait meets") {
    Proxy proxy(server.socket_path());
    RawConsumer consumer{proxy.uri(), "q", {.lease = lease}};
    CHECK(is_long(former_name(consumer, [&] { proxy.lose_clients(); })));
}

TEST_CASE_FIXTURE(Fences, "a consumer that may not ask for its waiting connection leaves a fence "
                          "for seven days behind") {
    add_user("blind", {"-client|list"});
    RawConsumer consumer{uri_of("blind", server.socket_path()), "q", {.lease = lease}};
    CHECK(is_long(former_name(consumer, [&] { kill_waiter(); })));
}

} // namespace fences_test
