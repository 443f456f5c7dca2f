// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A connection ends after some byte of a command or of its reply, for every command that moves a
// message. Whether it ran or not, each message is in one place and each settlement tells the truth.

#include "integration/core/fault_fixture.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lost_replies_test {

using namespace std::chrono_literals;
using orizuru::ConnectionError;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::test::eventually;
using orizuru::test::OwnServer;
using orizuru::test::Proxy;
using orizuru::test::RawConsumer;
using orizuru::test::RawGuard;
using orizuru::test::Texts;
using Cut = Proxy::Cut;
using Direction = Proxy::Direction;

struct Spot {
    Direction direction;
    std::uint64_t bytes;
    Cut cut;
};

/// All the first bytes, where protocols are fragile, and then some later ones. The longest command
/// is a script of some 1200 bytes with its arguments; the shortest reply is ":1\r\n".
std::vector<Spot> spots() {
    std::vector<Spot> all;
    for (const std::uint64_t bytes : {0U, 1U, 2U, 3U, 4U, 8U, 13U}) {
        all.push_back({Direction::to_client, bytes, Cut::fin});
    }
    all.push_back({Direction::to_client, 0, Cut::rst});
    all.push_back({Direction::to_client, 3, Cut::rst});
    all.push_back({Direction::to_client, 0, Cut::silence});
    all.push_back({Direction::to_client, 3, Cut::silence});
    for (const std::uint64_t bytes : {0U, 1U, 40U, 100U, 180U, 230U, 310U, 1400U}) {
        all.push_back({Direction::to_server, bytes, Cut::fin});
    }
    all.push_back({Direction::to_server, 40, Cut::silence});
    all.push_back({Direction::to_server, 200, Cut::rst});
    return all;
}

/// A proxy between the consumer and its server. A consumer makes its control connection first and
/// its wait connection second; the beat comes much later.
struct Cutting : OwnServer {
    Proxy proxy{server.socket_path()};
    std::size_t control = 0;
    std::size_t tried = 0;

    /// Only for commands that Redis does not answer at all.
    [[nodiscard]] std::string proxied(std::chrono::milliseconds command_timeout = 100ms) const {
        return proxy.uri() + "?command_timeout=" + std::to_string(command_timeout.count());
    }
    void begin() {
        // A late request of the consumer before would register it again.
        REQUIRE(eventually([this] { return !proxy.in_use(); }));
        // Not the fences: without its fence, a late beat would register an earlier consumer again.
        redis.command({"DEL", "q", "other", unack, dead, "orizuru:{q}:consumers"});
        control = proxy.accepted();
        ++tried;
    }
    void cut(const Spot& spot, std::size_t connection) {
        proxy.cut_after(spot.direction, proxy.bytes(connection, spot.direction) + spot.bytes,
                        spot.cut, connection);
    }
    /// Most cuts must have come: some do not, because the command or its reply was shorter.
    void check_cuts() const { CHECK(proxy.cuts() * 2 > tried); }

    template <class Settle>
    void try_settling(Settle settle, const std::string& target);
};

/// In every spot: of three messages the middle one is settled through the cut; it must then be in
/// `target` (nowhere: empty), the others must be as before, and the consumer must go on.
template <class Settle>
void Cutting::try_settling(Settle settle, const std::string& target) {
    for (const Spot& spot : spots()) {
        CAPTURE(static_cast<int>(spot.direction));
        CAPTURE(spot.bytes);
        CAPTURE(static_cast<int>(spot.cut));
        begin();
        RawConsumer consumer{proxied(), "q", {.prefetch = 3}};
        push({"a", "b", "c"});
        auto first = take(consumer);
        auto second = take(consumer);
        auto third = take(consumer);
        cut(spot, control);
        CHECK(settle(second));
        if (!target.empty()) {
            CHECK(redis.llen(target) == 1);
        }
        CHECK(held() == Texts{"c", "a"});
        CHECK(first.ack());
        CHECK(third.ack());
        if (target == "q") {
            auto again = take(consumer);
            CHECK(again->bytes == "b");
            CHECK(again.ack());
        }
        push({"d"});
        auto fourth = take(consumer);
        CHECK(fourth->bytes == "d");
        CHECK(fourth.ack());
        CHECK(held().empty());
        CHECK(redis.llen("q") == 0);
        CHECK(registered() == 1);
    }
    check_cuts();
}

TEST_CASE_FIXTURE(Cutting, "an ack through a cut connection is done once and says so") {
    try_settling([](RawGuard& guard) { return guard.ack(); }, "");
}

TEST_CASE_FIXTURE(Cutting, "a reject through a cut connection is done once and says so") {
    try_settling([](RawGuard& guard) { return guard.reject(); }, unack);
}

TEST_CASE_FIXTURE(Cutting, "a push through a cut connection is done once and says so") {
    try_settling([](RawGuard& guard) { return guard.push("other"); }, "other");
}

TEST_CASE_FIXTURE(Cutting, "a bury through a cut connection is done once and says so") {
    try_settling([](RawGuard& guard) { return guard.bury("cut"); }, dead);
}

TEST_CASE_FIXTURE(Cutting, "a release through a cut connection is done once and says so") {
    try_settling([](RawGuard& guard) { return guard.release(); }, "q");
}

TEST_CASE_FIXTURE(Cutting, "a fetch through a cut connection loses nothing and repeats nothing") {
    int prefetch = 1;
    bool is_waiting = false;
    SUBCASE("of a single message that is there") {}
    SUBCASE("of a single message that is waited for") { is_waiting = true; }
    SUBCASE("of several messages") { prefetch = 3; }
    SUBCASE("of several messages that are waited for") {
        prefetch = 3;
        is_waiting = true;
    }
    for (const Spot& spot : spots()) {
        if ((is_waiting || prefetch == 1) && spot.cut == Cut::silence) {
            continue; // noticed only when Redis should have ended the wait, after 5 s
        }
        CAPTURE(static_cast<int>(spot.direction));
        CAPTURE(spot.bytes);
        CAPTURE(static_cast<int>(spot.cut));
        begin();
        RawConsumer consumer{proxied(), "q", {.prefetch = prefetch}};
        REQUIRE(eventually([&] { // this makes the wait connection, sooner or later
            CHECK_FALSE(consumer.next(1ms));
            return proxy.accepted() >= control + 2;
        }));
        std::optional<RawGuard> first;
        if (is_waiting) {
            auto next = take_in_background(consumer);
            REQUIRE(somebody_waits());
            // Cuts the reply, or the command from its next byte on.
            cut(spot, control + 1);
            push({"a", "b", "c"});
            first = next.get();
        } else {
            push({"a", "b", "c"});
            cut(spot, prefetch == 1 ? control + 1 : control);
            first = take(consumer);
        }
        REQUIRE(first);
        CHECK((*first)->bytes == "a");
        CHECK(first->ack());
        for (const std::string expected : {"b", "c"}) {
            auto guard = take(consumer);
            CHECK(guard->bytes == expected);
            CHECK(guard.ack());
        }
        CHECK_FALSE(consumer.next(0ms));
        CHECK(is_empty());
        CHECK(registered() == 1);
    }
}

TEST_CASE_FIXTURE(Cutting, "stopping through a cut connection requeues everything") {
    for (const Spot& spot : spots()) {
        if (spot.cut == Cut::silence) {
            continue; // noticed when the time is up: the collector brings it back after the lease
        }
        CAPTURE(static_cast<int>(spot.direction));
        CAPTURE(spot.bytes);
        CAPTURE(static_cast<int>(spot.cut));
        begin();
        {
            RawConsumer consumer{proxied(5s), "q", {.prefetch = 3}};
            push({"a", "b", "c"});
            CHECK(take(consumer).ack());
            cut(spot, control);
            consumer.stop();
            CHECK_FALSE(consumer.next());
        }
        CHECK(redis.lrange("q") == Texts{"c", "b"});
        CHECK(nobody_left());
    }
    check_cuts();
}

TEST_CASE_FIXTURE(Cutting, "registering through a cut connection is repeated or fails, and leaves "
                           "nothing that a collector cannot clear") {
    for (const Spot& spot : spots()) {
        if (spot.cut == Cut::silence) {
            continue; // fails at connect_timeout: see the wrong replies
        }
        CAPTURE(static_cast<int>(spot.direction));
        CAPTURE(spot.bytes);
        begin();
        proxy.cut_after(spot.direction, spot.bytes, spot.cut);
        try {
            RawConsumer consumer{proxied(5s), "q"};
            push({"a"});
            CHECK(take(consumer).ack());
        } catch (const ConnectionError&) {
            // The greeting was cut: nothing has been registered.
            CHECK(spot.bytes < 14);
        }
        CHECK(is_empty());
        CHECK(nobody_left());
    }
    check_cuts();
}

TEST_CASE_FIXTURE(Cutting, "deferred acks through a cut connection are done once") {
    for (const Spot& spot : spots()) {
        CAPTURE(static_cast<int>(spot.direction));
        CAPTURE(spot.bytes);
        CAPTURE(static_cast<int>(spot.cut));
        begin();
        RawConsumer consumer{proxied(), "q", {.prefetch = 3, .ack = orizuru::AckMode::deferred}};
        push({"a", "b", "c", "d"});
        auto first = take(consumer);
        auto second = take(consumer);
        auto third = take(consumer);
        CHECK(second.ack());
        CHECK(first.ack());
        cut(spot, control);
        // This carries the two acks, and fetches.
        auto fourth = take(consumer);
        CHECK(fourth->bytes == "d");
        CHECK(fourth.ack());
        CHECK(third.ack());
        CHECK(consumer.flush() == 0);
        CHECK_FALSE(consumer.next(0ms));
        CHECK(is_empty());
        CHECK(registered() == 1);
    }
    check_cuts();
}

TEST_CASE_FIXTURE(Cutting, "a push of a producer through a cut connection is there when it says "
                           "so, and not when it says not") {
    for (const Spot& spot : spots()) {
        CAPTURE(static_cast<int>(spot.direction));
        CAPTURE(spot.bytes);
        CAPTURE(static_cast<int>(spot.cut));
        begin();
        Producer<Raw> producer{proxied(), "q"};
        producer.push({"a"});
        cut(spot, control);
        std::int64_t least = 1;
        std::int64_t most = 1;
        // The cut may come at once, between two pushes, or in a later one.
        for (int i = 0; i < 4; ++i) {
            try {
                producer.push({"b"});
                ++least;
                ++most;
            } catch (const ConnectionError& error) {
                most += error.in_doubt() ? 1 : 0;
            }
        }
        CHECK(least >= 4);
        CHECK(redis.llen("q") >= least);
        CHECK(redis.llen("q") <= most);
    }
    check_cuts();
}

} // namespace lost_replies_test
