// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/consumer/delivery.hpp>
#include <orizuru/detail/consumer/engine.hpp>
#include <orizuru/detail/consumer/scripts.hpp>
#include <orizuru/detail/redis/verdict.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace window_test {

using namespace orizuru;
using namespace orizuru::detail;
using namespace std::chrono_literals;
using Action = Verdict::Action;
using S = Delivery::State;
using Type = Reply::Type;

Reply integer(std::int64_t value) { return {Type::integer, value, {}, {}}; }
Reply string(const std::string& text) { return {Type::string, 0, text, {}}; }
Reply array(std::vector<Reply> elements) { return {Type::array, 0, {}, std::move(elements)}; }

/// A registered window that holds two messages, both handed out.
struct Fixture {
    Window window{Keys("q"), 30s, [] { return make_identity("w"); }};
    std::string out;
    std::vector<DeliveryPtr> held;

    Fixture() {
        window.send_start(out);
        window.on_start(integer(1));
        window.send_settle(out, 2);
        window.on_reply(array({string("a"), string("b")}));
        while (DeliveryPtr message = window.hand_out()) {
            held.push_back(message);
        }
    }
    void move(const DeliveryPtr& message) {
        window.want(message, std::make_unique<Move>(push_body(), std::vector<std::string>{"other"},
                                                    std::vector<std::string>()));
        window.send_move(out);
    }
    /// Both connections end, and nothing that was unanswered has run.
    Recovered cut() {
        const std::string header = window.identity().header(std::exchange(version, 0));
        window.begin_recovery();
        window.send_adopt(out);
        window.on_adopt(array({string(header), array({string("b"), string("a")})}));
        std::optional<Recovered> recovered = window.take_recovered();
        REQUIRE(recovered);
        REQUIRE(window.messages().size() == 2);
        return std::move(*recovered);
    }
    /// What the recovery says behind a fetch that Redis answers so.
    std::string refusal_of_fetch(Reply reply) {
        window.send_settle(out, 1);
        CHECK(window.on_reply(std::move(reply)).action == Action::recover);
        return cut().refusal;
    }
    std::string refusal_of_fetch(const std::string& text) {
        return refusal_of_fetch(Reply{Type::error, 0, text, {}});
    }

    std::uint64_t version = 1; ///< of the last request that ran
};

TEST_CASE("a message counts as moved by the reply 1 and by nothing else") {
    for (const Reply& reply : {integer(0), integer(2), integer(-1), string("1"), array({}),
                               Reply{Type::status, 0, "OK", {}}, Reply{}}) {
        Fixture fixture;
        fixture.move(fixture.held[0]);
        CHECK(fixture.window.on_reply(Reply(reply)).action == Action::recover);
        CHECK(fixture.held[0]->state == S::sent);
    }
    Fixture fixture;
    fixture.move(fixture.held[0]);
    CHECK(fixture.window.on_reply(integer(1)).action == Action::proceed);
    CHECK(fixture.held[0]->state == S::settled);
    CHECK(fixture.held[1]->state == S::held);
}

TEST_CASE("a message counts as acked by strings, no more than were asked for") {
    for (const Reply& reply : {array({string("c"), string("d")}), array({integer(1)}),
                               array({Reply{}}), integer(1), string("c"), Reply{}}) {
        Fixture fixture;
        fixture.window.want(fixture.held[0], nullptr);
        fixture.window.send_settle(fixture.out, 1);
        CHECK(fixture.window.on_reply(Reply(reply)).action == Action::recover);
        CHECK(fixture.held[0]->state == S::sent);
        CHECK(fixture.window.messages().size() == 2);
    }
    Fixture fixture;
    fixture.window.want(fixture.held[0], nullptr);
    fixture.window.send_settle(fixture.out, 1);
    CHECK(fixture.window.on_reply(array({string("c")})).action == Action::proceed);
    CHECK(fixture.held[0]->state == S::settled);
    CHECK(fixture.window.messages().size() == 2);
}

TEST_CASE("messages count as given back by a count and by nothing else") {
    for (const Reply& reply : {integer(-1), string("1"), array({}), Reply{}}) {
        Fixture fixture;
        fixture.window.send_release(fixture.out);
        CHECK(fixture.window.on_reply(Reply(reply)).action == Action::recover);
        CHECK(fixture.window.unanswered());
    }
    Fixture fixture;
    fixture.window.send_release(fixture.out);
    CHECK(fixture.window.on_reply(integer(0)).action == Action::proceed);
    CHECK_FALSE(fixture.window.unanswered());
}

TEST_CASE("after a refusal the chain goes on from the last request that ran") {
    Fixture fixture;
    Window& window = fixture.window;
    for (const DeliveryPtr& message : fixture.held) {
        window.want(message, nullptr);
        window.send_settle(fixture.out, 0);
    }
    CHECK(window.on_reply({Type::error, 0, "BUSY a script runs", {}}).action == Action::back_off);
    CHECK_FALSE(window.can_send());
    CHECK(window.on_reply({Type::error, 0, "STALE header", {}}).action == Action::proceed);
    REQUIRE(window.can_send());
    fixture.out.clear();
    window.send_settle(fixture.out, 0);
    const std::string expected = window.identity().header(1) + "\r\n";
    const std::string next = window.identity().header(2) + "\r\n";
    REQUIRE(fixture.out.find(expected) != std::string::npos);
    CHECK(fixture.out.find(expected) < fixture.out.find(next));
    CHECK(fixture.out.find(next) != std::string::npos);
    CHECK(window.on_reply(array({})).action == Action::proceed);
    CHECK(window.messages().empty());
}

TEST_CASE("of the moves that are cut off again and again, the one in front is given up") {
    Fixture fixture;
    Window& window = fixture.window;
    fixture.move(fixture.held[0]);
    fixture.move(fixture.held[1]);
    for (int times = 1; times < 6; ++times) {
        fixture.cut();
        REQUIRE(fixture.held[0]->state == S::wanted);
        window.send_move(fixture.out);
        window.send_move(fixture.out);
    }
    fixture.cut();
    CHECK(fixture.held[0]->state == S::held);
    CHECK(fixture.held[0]->refusal == "ERR the connection broke each time that this was sent");
    CHECK(fixture.held[1]->state == S::wanted);
}

TEST_CASE("an ack that is cut off again and again is not given up, nor is a move behind it") {
    Fixture fixture;
    Window& window = fixture.window;
    window.want(fixture.held[0], nullptr);
    window.send_settle(fixture.out, 0);
    fixture.move(fixture.held[1]);
    for (int times = 0; times < 20; ++times) {
        fixture.cut();
        REQUIRE(fixture.held[0]->state == S::wanted);
        REQUIRE(fixture.held[1]->state == S::wanted);
        window.send_settle(fixture.out, 0);
        window.send_move(fixture.out);
    }
}

TEST_CASE(
    "a script that Redis has forgotten is sent in full at once; a body answered so, too, after "
    "a pause") {
    Fixture fixture;
    const Reply forgotten{Type::error, 0, "NOSCRIPT No matching script. Please use EVAL.", {}};
    fixture.out.clear();
    fixture.window.send_settle(fixture.out, 1);
    REQUIRE(fixture.out.find("EVALSHA") != std::string::npos);
    CHECK(fixture.window.on_reply(Reply(forgotten)).action == Action::proceed);
    for (int i = 0; i < 2; ++i) {
        fixture.out.clear();
        fixture.window.send_settle(fixture.out, 1);
        REQUIRE(fixture.out.find("EVAL\r\n") != std::string::npos);
        CHECK(fixture.window.on_reply(Reply(forgotten)).action == Action::back_off);
    }
}

TEST_CASE("a wait in Redis is for a finite time, in seconds") {
    for (const auto& [time, seconds] : {std::pair(5000ms, "5.000"), std::pair(50ms, "0.050")}) {
        Fixture fixture;
        fixture.out.clear();
        fixture.window.send_blocking_fetch(fixture.out, time);
        CHECK(fixture.out.ends_with("$5\r\n" + std::string(seconds) + "\r\n"));
        CHECK(fixture.window.blocked());
    }
}

TEST_CASE("an error that fetching meets behind each recovery is told at the fourth in a row") {
    Fixture fixture;
    for (int row = 0; row < 2; ++row) {
        CHECK(fixture.refusal_of_fetch("ERR a") == "");
        CHECK(fixture.refusal_of_fetch("ERR b") == "");
        CHECK(fixture.refusal_of_fetch("ERR c") == "");
        CHECK(fixture.refusal_of_fetch("ERR d") == "ERR d");
        CHECK(fixture.refusal_of_fetch("ERR a") == "");
        CHECK(fixture.refusal_of_fetch("ERR b") == "");
        CHECK(fixture.refusal_of_fetch("ERR c") == "");
        CHECK(fixture.refusal_of_fetch(integer(1)) == "ERR a reply of the wrong type");
    }
    fixture.refusal_of_fetch("ERR a");
    fixture.refusal_of_fetch("ERR b");
    fixture.refusal_of_fetch("ERR c");
    fixture.window.send_settle(fixture.out, 1);
    CHECK(fixture.window.on_reply(array({})).action == Action::proceed);
    fixture.version = 1;
    CHECK(fixture.refusal_of_fetch("ERR d") == "");
}

} // namespace window_test
