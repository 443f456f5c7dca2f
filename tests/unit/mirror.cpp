// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/detail/redis/remedy.hpp>
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

namespace mirror_test {

using namespace orizuru;
using namespace orizuru::detail;
using namespace std::chrono_literals;
using S = Delivery::State;
using Type = Reply::Type;

Reply integer(std::int64_t value) { return {Type::integer, value, {}, {}}; }
Reply string(const std::string& text) { return {Type::string, 0, text, {}}; }
Reply array(std::vector<Reply> elements) { return {Type::array, 0, {}, std::move(elements)}; }

/// A registered mirror that holds two messages, both handed out.
struct Fixture {
    Mirror mirror{Keys("q"), 30s, [] { return make_identity("w"); }};
    std::string out;
    std::vector<DeliveryPtr> held;

    Fixture() {
        mirror.send_start(out);
        mirror.on_start(integer(1));
        mirror.send_settle(out, 2);
        mirror.on_reply(array({string("a"), string("b")}));
        while (DeliveryPtr message = mirror.hand_out()) {
            held.push_back(message);
        }
    }
    /// How many words the SETTLE of all acks has.
    std::string words_of_settle(int fetch) {
        out.clear();
        mirror.send_settle(out, fetch);
        return out.substr(0, out.find('\r'));
    }
    void move(const DeliveryPtr& message) {
        mirror.want(message, std::make_unique<Move>(push_body(), std::vector<std::string>{"other"},
                                                    std::vector<std::string>()));
        mirror.send_move(out);
    }
    /// Both connections end, and nothing that was unanswered has run.
    Recovered cut() {
        const std::string header = mirror.identity().header(std::exchange(version, 0));
        const std::uint64_t incarnation = mirror.incarnation();
        mirror.begin_recovery();
        mirror.begin_recovery();
        CHECK(mirror.incarnation() == incarnation + 1);
        mirror.send_adopt(out);
        mirror.on_adopt(array({string(header), array({string("b"), string("a")})}));
        std::optional<Recovered> recovered = mirror.take_recovered();
        REQUIRE(recovered);
        REQUIRE(mirror.messages().size() == 2);
        return std::move(*recovered);
    }
    /// What the recovery says behind a fetch that Redis answers so.
    std::string refusal_of_fetch(Reply reply) {
        mirror.send_settle(out, 1);
        const bool error = reply.is(Type::error);
        CHECK(mirror.on_reply(std::move(reply)).remedy ==
              (error ? Remedy::recover : Remedy::reconnect));
        return cut().refusal;
    }
    std::string refusal_of_fetch(const std::string& text) {
        return refusal_of_fetch(Reply{Type::error, 0, text, {}});
    }

    std::uint64_t version = 1; ///< of the last request that ran
};

TEST_CASE("SETTLE names the least length unless it settles all that is held") {
    Fixture fixture;
    Mirror& mirror = fixture.mirror;
    mirror.want(fixture.held[0], nullptr);
    SUBCASE("not all") {
        CHECK(fixture.words_of_settle(0) == "*9");
        mirror.want(fixture.held[1], nullptr); // all that the first leaves
        CHECK(fixture.words_of_settle(0) == "*7");
    }
    SUBCASE("all") {
        mirror.want(fixture.held[1], nullptr);
        CHECK(fixture.words_of_settle(0) == "*7");
    }
    SUBCASE("all, and fetches") {
        mirror.want(fixture.held[1], nullptr);
        CHECK(fixture.words_of_settle(2) == "*9"); // the source and n
    }
}

TEST_CASE("a message counts as moved by the reply 1 and by nothing else") {
    for (const Reply& reply : {integer(0), integer(2), integer(-1), string("1"), array({}),
                               Reply{Type::status, 0, "OK", {}}, Reply{}}) {
        Fixture fixture;
        fixture.move(fixture.held[0]);
        CHECK(fixture.mirror.on_reply(Reply(reply)).remedy == Remedy::reconnect);
        CHECK(fixture.held[0]->state == S::sent);
    }
    Fixture fixture;
    fixture.move(fixture.held[0]);
    CHECK(fixture.mirror.on_reply(integer(1)).remedy == Remedy::none);
    CHECK(fixture.held[0]->state == S::settled);
    CHECK(fixture.held[1]->state == S::held);
}

TEST_CASE("a message counts as acked by strings, no more than were asked for") {
    for (const Reply& reply : {array({string("c"), string("d")}), array({integer(1)}),
                               array({Reply{}}), integer(1), string("c"), Reply{}}) {
        Fixture fixture;
        fixture.mirror.want(fixture.held[0], nullptr);
        fixture.mirror.send_settle(fixture.out, 1);
        CHECK(fixture.mirror.on_reply(Reply(reply)).remedy == Remedy::reconnect);
        CHECK(fixture.held[0]->state == S::sent);
        CHECK(fixture.mirror.messages().size() == 2);
    }
    Fixture fixture;
    fixture.mirror.want(fixture.held[0], nullptr);
    fixture.mirror.send_settle(fixture.out, 1);
    CHECK(fixture.mirror.on_reply(array({string("c")})).remedy == Remedy::none);
    CHECK(fixture.held[0]->state == S::settled);
    CHECK(fixture.mirror.messages().size() == 2);
}

TEST_CASE("messages count as given back by a count and by nothing else") {
    for (const Reply& reply : {integer(-1), string("1"), array({}), Reply{}}) {
        Fixture fixture;
        fixture.mirror.send_release(fixture.out);
        CHECK(fixture.mirror.on_reply(Reply(reply)).remedy == Remedy::reconnect);
        CHECK(fixture.mirror.unanswered());
    }
    Fixture fixture;
    fixture.mirror.send_release(fixture.out);
    CHECK(fixture.mirror.on_reply(integer(0)).remedy == Remedy::none);
    CHECK_FALSE(fixture.mirror.unanswered());
}

TEST_CASE("after a refusal the chain goes on from the last request that ran") {
    Fixture fixture;
    Mirror& mirror = fixture.mirror;
    for (const DeliveryPtr& message : fixture.held) {
        mirror.want(message, nullptr);
        mirror.send_settle(fixture.out, 0);
    }
    CHECK(mirror.on_reply({Type::error, 0, "BUSY a script runs", {}}).remedy == Remedy::back_off);
    CHECK_FALSE(mirror.can_send());
    CHECK(mirror.on_reply({Type::error, 0, "STALE header", {}}).remedy == Remedy::none);
    REQUIRE(mirror.can_send());
    fixture.out.clear();
    mirror.send_settle(fixture.out, 0);
    const std::string expected = mirror.identity().header(1) + "\r\n";
    const std::string next = mirror.identity().header(2) + "\r\n";
    REQUIRE(fixture.out.find(expected) != std::string::npos);
    CHECK(fixture.out.find(expected) < fixture.out.find(next));
    CHECK(fixture.out.find(next) != std::string::npos);
    CHECK(mirror.on_reply(array({})).remedy == Remedy::none);
    CHECK(mirror.messages().empty());
}

TEST_CASE("of the moves that are cut off again and again, the one in front is given up") {
    Fixture fixture;
    Mirror& mirror = fixture.mirror;
    fixture.move(fixture.held[0]);
    fixture.move(fixture.held[1]);
    for (int times = 1; times < 6; ++times) {
        fixture.cut();
        REQUIRE(fixture.held[0]->state == S::wanted);
        mirror.send_move(fixture.out);
        mirror.send_move(fixture.out);
    }
    fixture.cut();
    CHECK(fixture.held[0]->state == S::held);
    CHECK(fixture.held[0]->refusal == "ERR the connection broke each time that this was sent");
    CHECK(fixture.held[1]->state == S::wanted);
}

/// A mirror that holds so many messages, all handed out, and has settled none.
std::vector<DeliveryPtr> take(Mirror& mirror, std::size_t count) {
    std::string out;
    mirror.send_start(out);
    mirror.on_start(integer(1));
    mirror.send_settle(out, static_cast<int>(count));
    std::vector<Reply> payloads;
    for (std::size_t i = 0; i < count; ++i) {
        payloads.push_back(string(std::to_string(i)));
    }
    mirror.on_reply(array(std::move(payloads)));
    std::vector<DeliveryPtr> held;
    while (DeliveryPtr message = mirror.hand_out()) {
        held.push_back(message);
    }
    return held;
}

TEST_CASE("16 moves may be unanswered at a time, of large ones fewer, and acks go beside them") {
    Mirror mirror{Keys("q"), 30s, [] { return make_identity("w"); }};
    std::vector<DeliveryPtr> held = take(mirror, 40);
    std::string argument = "small";
    std::size_t most = 16;
    SUBCASE("small ones") {}
    SUBCASE("large ones") {
        argument = std::string(600'000, 'x');
        most = 2;
    }
    for (const DeliveryPtr& message : held) {
        if (message != held.back()) {
            mirror.want(message, std::make_unique<Move>(push_body(), std::vector<std::string>{"o"},
                                                        std::vector<std::string>{argument}));
        }
    }
    std::string out;
    std::size_t sent = 0;
    for (; mirror.can_move(); ++sent) {
        mirror.send_move(out);
    }
    CHECK(sent == most);
    CHECK(mirror.can_send());
    mirror.want(held.back(), nullptr);
    mirror.send_settle(out, 0);
    CHECK(mirror.on_reply(integer(1)).remedy == Remedy::none);
    CHECK(held[0]->state == S::settled);
    CHECK(mirror.can_move());
    // A refusal ends the chain, and those behind it are sent again, each once.
    CHECK(mirror.on_reply({Type::error, 0, "BUSY a script runs", {}}).remedy == Remedy::back_off);
    while (mirror.unanswered()) {
        CHECK_FALSE(mirror.can_move());
        mirror.on_reply({Type::error, 0, "STALE header", {}});
    }
    std::size_t again = 0;
    for (; mirror.has_moves(); ++again) {
        REQUIRE(mirror.can_move());
        mirror.send_move(out);
        mirror.on_reply(integer(1));
    }
    CHECK(again == 38);
}

TEST_CASE("an ack that is cut off again and again is not given up, nor is a move behind it") {
    Fixture fixture;
    Mirror& mirror = fixture.mirror;
    mirror.want(fixture.held[0], nullptr);
    mirror.send_settle(fixture.out, 0);
    fixture.move(fixture.held[1]);
    for (int times = 0; times < 20; ++times) {
        fixture.cut();
        REQUIRE(fixture.held[0]->state == S::wanted);
        REQUIRE(fixture.held[1]->state == S::wanted);
        mirror.send_settle(fixture.out, 0);
        mirror.send_move(fixture.out);
    }
}

TEST_CASE(
    "a script that Redis has forgotten is sent in full at once; a body answered so, too, after "
    "a pause") {
    Fixture fixture;
    const Reply forgotten{Type::error, 0, "NOSCRIPT No matching script. Please use EVAL.", {}};
    fixture.out.clear();
    fixture.mirror.send_settle(fixture.out, 1);
    REQUIRE(fixture.out.find("EVALSHA") != std::string::npos);
    CHECK(fixture.mirror.on_reply(Reply(forgotten)).remedy == Remedy::none);
    for (int i = 0; i < 2; ++i) {
        fixture.out.clear();
        fixture.mirror.send_settle(fixture.out, 1);
        REQUIRE(fixture.out.find("EVAL\r\n") != std::string::npos);
        CHECK(fixture.mirror.on_reply(Reply(forgotten)).remedy == Remedy::back_off);
    }
}

TEST_CASE("a wait in Redis is for a finite time, in seconds") {
    for (const auto& [time, seconds] : {std::pair(5000ms, "5.000"), std::pair(50ms, "0.050")}) {
        Fixture fixture;
        fixture.out.clear();
        fixture.mirror.send_blocking_fetch(fixture.out, time);
        CHECK(fixture.out.ends_with("$5\r\n" + std::string(seconds) + "\r\n"));
        CHECK(fixture.mirror.blocked());
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
    fixture.mirror.send_settle(fixture.out, 1);
    CHECK(fixture.mirror.on_reply(array({})).remedy == Remedy::none);
    fixture.version = 1;
    CHECK(fixture.refusal_of_fetch("ERR d") == "");
}

/// A mirror that asks for a suspect.
struct Trying : Fixture {
    const std::shared_ptr<Trials> trials = std::make_shared<Trials>();
    const TrialLimits limits = TrialLimits::of(8, 3);

    void ask() { mirror.send_try_suspect(out, Trials::ask(trials, limits), limits); }
    void get(const std::string& payload, const std::string& recoveries) {
        ask();
        REQUIRE(mirror.on_reply(array({string(payload), string("f"), string(recoveries)})).remedy ==
                Remedy::none);
    }
};

TEST_CASE("a suspect comes with its count's field and number, or there is none") {
    for (const Reply& reply :
         {integer(1), string("c"), Reply{}, array({string("c")}), array({string("c"), string("f")}),
          array({string("c"), string("f"), string("-1")}),
          array({string("c"), string("f"), integer(1)}),
          array({string("c"), string("f"), string("1"), string("1")})}) {
        Trying fixture;
        fixture.ask();
        CHECK(fixture.mirror.on_reply(Reply(reply)).remedy == Remedy::reconnect);
        CHECK(fixture.mirror.messages().size() == 2);
    }
    Trying fixture;
    fixture.ask();
    CHECK(fixture.mirror.fetching());
    CHECK(Trials::ask(fixture.trials, fixture.limits) == nullptr); // one at a time
    CHECK(fixture.mirror.on_reply(array({})).remedy == Remedy::none);
    CHECK(fixture.trials->held().count == 0);
    CHECK_FALSE(fixture.mirror.take_trial_news());
    fixture.get("c", "2");
    CHECK(fixture.mirror.messages().size() == 3);
    CHECK(fixture.trials->held().count == 1);
    CHECK(fixture.trials->held().most_blamed == 2);
    CHECK(fixture.mirror.take_trial_news());
    fixture.get("d", "1");
    CHECK(Trials::ask(fixture.trials, fixture.limits) == nullptr); // two, one of which has two
    CHECK(fixture.trials->held().count == 2);
}

TEST_CASE("a refused question for a suspect tells nobody, and another one can follow") {
    for (const std::string text : {"REFUSED NOPERM no", "NOPERM no", "BUSY wait"}) {
        Trying fixture;
        fixture.ask();
        const Verdict verdict = fixture.mirror.on_reply(Reply{Type::error, 0, text, {}});
        CHECK(verdict.remedy == (text == "BUSY wait" ? Remedy::back_off : Remedy::none));
        CHECK(fixture.trials->held().count == 0);
        fixture.get("c", "1");
    }
}

TEST_CASE("a suspect whose fetch ran without a reply counts as one that was blamed most often") {
    Trying fixture;
    Mirror& mirror = fixture.mirror;
    fixture.ask();
    const std::string header = mirror.identity().header(fixture.version + 1);
    mirror.begin_recovery();
    mirror.send_adopt(fixture.out);
    mirror.on_adopt(array({string(header), array({string("c"), string("b"), string("a")})}));
    REQUIRE(mirror.messages().size() == 3);
    CHECK(mirror.messages().back()->trial != nullptr);
    CHECK(fixture.trials->held().count == 1);
    CHECK(fixture.trials->held().most_blamed == 3);
}

TEST_CASE("a suspect counts until it is settled, and one that was not handed out goes back") {
    Trying fixture;
    Mirror& mirror = fixture.mirror;
    fixture.get("c", "1");
    fixture.get("d", "1");
    DeliveryPtr handed_out;
    while (mirror.messages()[2] != handed_out) {
        handed_out = mirror.hand_out();
    }
    mirror.requeue_suspects();
    CHECK(mirror.messages()[2]->state == S::held);
    REQUIRE(mirror.messages()[3]->state == S::wanted);
    CHECK(mirror.messages()[3]->move->keys == std::vector<std::string>{"orizuru:{q}:suspects"});
    mirror.send_move(fixture.out);
    mirror.on_reply(integer(1));
    CHECK(fixture.trials->held().count == 1);
    mirror.want(handed_out,
                std::make_unique<Move>(orizuru::detail::ack_body(), std::vector<std::string>(),
                                       std::vector<std::string>(), Move::Recoveries::ended));
    fixture.out.clear();
    mirror.send_move(fixture.out);
    CHECK(fixture.out.find("-4 f") != std::string::npos);
    CHECK(fixture.out.find("orizuru:{q}:recoveries") != std::string::npos);
    mirror.on_reply(integer(1));
    CHECK(fixture.trials->held().count == 0);
}

/// The number in the last command behind this text: for how long the fence stays.
std::string time_behind(const std::string& out, const std::string& text) {
    const auto begin = out.find('\n', out.find("\n$", out.rfind(text) + text.size()) + 1) + 1;
    return out.substr(begin, out.find('\r', begin) - begin);
}

/// A registered mirror that holds nothing.
struct Owing {
    Owing() { start(); }

    void start() {
        mirror.send_start(out);
        mirror.on_start(integer(1));
    }
    void wait() {
        mirror.send_blocking_fetch(out, 5s);
        REQUIRE(mirror.blocked());
    }
    [[nodiscard]] std::string fence_of_release() {
        mirror.send_release(out);
        return time_behind(out, mirror.identity().id);
    }
    [[nodiscard]] std::string fence_of_adoption() {
        mirror.begin_recovery();
        out.clear();
        mirror.send_adopt(out);
        return time_behind(out, ":0\r");
    }
    void adopt() {
        mirror.on_adopt(array({string(mirror.identity().header(0)), array({})}));
        REQUIRE(mirror.state() == Mirror::State::running);
    }

    Mirror mirror{Keys("q"), 30s, [] { return make_identity("w"); }};
    std::string out;
    const std::string minutes = "600000";
    const std::string days = "604800000";
};

TEST_CASE_FIXTURE(Owing, "a fence stays for ten minutes when all that was sent is answered") {
    SUBCASE("nothing but START") {}
    SUBCASE("a wait in Redis") {
        wait();
        mirror.on_blocking_fetch(Reply());
    }
    SUBCASE("a wait that Redis refused") {
        wait();
        mirror.on_blocking_fetch({Type::error, 0, "READONLY a replica", {}});
    }
    SUBCASE("a request of the chain") {
        mirror.send_settle(out, 1);
        mirror.on_reply(array({}));
    }
    SUBCASE("a beat") {
        mirror.on_beat_sent();
        mirror.on_beat_answered();
    }
    CHECK(fence_of_adoption() == minutes);
    adopt();
    CHECK(fence_of_release() == minutes);
}

TEST_CASE_FIXTURE(Owing, "a release leaves a fence for seven days when a request may come late") {
    SUBCASE("a wait that was given up") {
        wait();
        mirror.forget_blocking_fetch();
    }
    SUBCASE("a beat") { mirror.on_beat_sent(); }
    SUBCASE("a beat, and another one was answered") {
        mirror.on_beat_sent();
        mirror.on_beat_sent();
        mirror.on_beat_answered();
    }
    SUBCASE("START, which was sent again") {
        mirror = Mirror(Keys("q"), 30s, [] { return make_identity("w"); });
        mirror.send_start(out);
        start();
    }
    CHECK(fence_of_release() == days);
}

TEST_CASE_FIXTURE(Owing,
                  "a recovery leaves a fence for seven days when a request may come late, and "
                  "the next one does not") {
    SUBCASE("a wait") { wait(); }
    SUBCASE("a wait that was given up") {
        wait();
        mirror.forget_blocking_fetch();
    }
    SUBCASE("a request of the chain") { mirror.send_settle(out, 1); }
    SUBCASE("a beat") { mirror.on_beat_sent(); }
    SUBCASE("an earlier ADOPT") { CHECK(fence_of_adoption() == minutes); }
    CHECK(fence_of_adoption() == days);
    adopt();
    CHECK(fence_of_adoption() == minutes);
}

TEST_CASE_FIXTURE(Owing, "a recovery leaves a fence for ten minutes when the wait in doubt is lost "
                         "with its connection") {
    wait();
    mirror.begin_recovery();
    REQUIRE(mirror.has_late_fetch());
    mirror.on_lost_fetch();
    CHECK(fence_of_adoption() == minutes);
}

TEST_CASE_FIXTURE(Owing, "an ADOPT that Redis refused comes no more") {
    CHECK(fence_of_adoption() == minutes);
    mirror.on_adopt({Type::error, 0, "BUSY a script runs", {}});
    CHECK(fence_of_adoption() == minutes);
}

} // namespace mirror_test
