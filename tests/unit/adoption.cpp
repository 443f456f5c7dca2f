// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/adoption.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_reader.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace adoption_test {

using namespace orizuru;
using namespace orizuru::detail;
using namespace std::chrono_literals;
using List = std::vector<std::string>;

Reply reply_of(std::string_view bytes) {
    ReplyReader reader;
    reader.feed(bytes);
    const Reply* const reply = reader.next();
    REQUIRE(reply);
    return *reply;
}

Reply error(const std::string& text) { return reply_of("-" + text + "\r\n"); }

/// What ADOPT returns: the old header, and the list with the newest first.
Reply adopted(const std::string& header, const List& newest_first) {
    Reply list;
    list.type = Reply::Type::array;
    for (const std::string& payload : newest_first) {
        list.elements.push_back({Reply::Type::string, 0, payload, {}});
    }
    Reply reply;
    reply.type = Reply::Type::array;
    reply.elements = {{Reply::Type::string, 0, header, {}}, std::move(list)};
    return reply;
}

/// An adoption of "old" whose new identities are called new1, new2, ...
struct Fixture {
    Adoption adoption{Identity{"old", "n0"}};
    Keys keys{"mail"};
    int made = 0;

    /// The arguments of the command sent.
    List send() {
        std::string out;
        adoption.send(out, keys, 30s, 7s, [this] {
            const std::string number = std::to_string(++made);
            return Identity{"new" + number, "n" + number};
        });
        List arguments;
        for (const Reply& argument : reply_of(out).elements) {
            arguments.push_back(argument.text);
        }
        return arguments;
    }

    /// The list that the command would take over, and for whom.
    std::string target() { return send().at(4); }

    Remedy answer(const Reply& reply) { return adoption.on_reply(reply).remedy; }
};

TEST_CASE_FIXTURE(Fixture, "the command names both identities' keys and gives a fresh header") {
    CHECK(send() == List{"EVAL", std::string(adopt_script()), "5", "orizuru:{mail}:heartbeat:old",
                         "orizuru:{mail}:processing:old", "orizuru:{mail}:heartbeat:new1",
                         "orizuru:{mail}:processing:new1", "orizuru:{mail}:consumers", "old",
                         "new1", "orz:n1:0", "7000", "30000", "orz:n0:"});
    CHECK_FALSE(adoption.result());
}

TEST_CASE_FIXTURE(Fixture, "a list that is taken over comes oldest first, with its old header") {
    send();
    CHECK(answer(adopted("orz:n0:7", {"c", "", "a"})) == Remedy::none);
    REQUIRE(adoption.result());
    CHECK(adoption.result()->header == "orz:n0:7");
    CHECK(adoption.result()->list == List{"a", "", "c"});
    CHECK(adoption.result()->identity.id == "new1");
    CHECK(adoption.result()->identity.nonce == "n1");
}

TEST_CASE_FIXTURE(Fixture, "an empty list without a header is a result too") {
    send();
    CHECK(answer(adopted("", {})) == Remedy::none);
    REQUIRE(adoption.result());
    CHECK(adoption.result()->header.empty());
    CHECK(adoption.result()->list == List{});
}

TEST_CASE("a list that a collector or a release took is gone, the header is told") {
    for (const std::string how : {"reaped", "released"}) {
        Fixture fresh;
        fresh.send();
        CHECK(fresh.answer(error("FENCED " + how + " orz:n0:7")) == Remedy::none);
        REQUIRE(fresh.adoption.result());
        CHECK(fresh.adoption.result()->header == "orz:n0:7");
        CHECK(!fresh.adoption.result()->list);
    }
}

TEST_CASE("a fence without a header means that nothing is known to have run") {
    for (const std::string text : {"FENCED reaped ", "FENCED reaped", "FENCED "}) {
        CAPTURE(text);
        Fixture fresh;
        fresh.send();
        CHECK(fresh.answer(error(text)) == Remedy::none);
        REQUIRE(fresh.adoption.result());
        CHECK(fresh.adoption.result()->header.empty());
        CHECK(!fresh.adoption.result()->list);
    }
}

TEST_CASE_FIXTURE(Fixture, "a lost reply is made up for: the fence leads on to the heir's list") {
    CHECK(target() == "orizuru:{mail}:processing:old");
    // Its reply is lost; the next attempt meets the fence that it left.
    CHECK(target() == "orizuru:{mail}:processing:old");
    CHECK(answer(error("FENCED adopted new1 orz:n0:7")) == Remedy::none);
    CHECK_FALSE(adoption.result());
    const List next = send();
    CHECK(next.at(4) == "orizuru:{mail}:processing:new1");
    CHECK(next.at(8) == "new1");
    CHECK(next.at(9) == "new3");
    CHECK(next.back() == "orz:n1:");
    CHECK(answer(adopted("orz:n1:0", {"b", "a"})) == Remedy::none);
    REQUIRE(adoption.result());
    // The header of the list that was in doubt, not of the one that passed it on.
    CHECK(adoption.result()->header == "orz:n0:7");
    CHECK(adoption.result()->list == List{"a", "b"});
    CHECK(adoption.result()->identity.id == "new3");
}

TEST_CASE_FIXTURE(Fixture, "any number of lost replies is made up for") {
    send(); // new1: ran, reply lost
    send(); // new2
    CHECK(answer(error("FENCED adopted new1 orz:n0:7")) == Remedy::none);
    send(); // new3: ran, reply lost
    send(); // new4
    CHECK(answer(error("FENCED adopted new3 orz:n1:0")) == Remedy::none);
    CHECK(target() == "orizuru:{mail}:processing:new3");
    CHECK(answer(error("FENCED reaped orz:n3:0")) == Remedy::none);
    REQUIRE(adoption.result());
    CHECK(adoption.result()->header == "orz:n0:7");
    CHECK(!adoption.result()->list);
}

TEST_CASE_FIXTURE(Fixture, "a list that a stranger adopted is gone") {
    send();
    CHECK(answer(error("FENCED adopted stranger orz:n0:7")) == Remedy::none);
    REQUIRE(adoption.result());
    CHECK(adoption.result()->header == "orz:n0:7");
    CHECK(!adoption.result()->list);
}

TEST_CASE_FIXTURE(Fixture, "a name that is taken is replaced by another") {
    const std::string first = send().at(9);
    CHECK(answer(error("BUSYNAME")) == Remedy::none);
    CHECK_FALSE(adoption.result());
    const List next = send();
    CHECK(next.at(9) != first);
    CHECK(next.at(4) == "orizuru:{mail}:processing:old");
}

TEST_CASE_FIXTURE(Fixture, "a refusal says whether to wait, to connect again or to give up") {
    struct Case {
        const char* text;
        Remedy remedy;
    };
    for (const auto& [text, remedy] :
         {Case{"LOADING Redis is loading", Remedy::back_off}, Case{"OOM not now", Remedy::back_off},
          Case{"READONLY a replica", Remedy::reconnect}, Case{"NOPERM no", Remedy::give_up},
          Case{"WRONGTYPE no list", Remedy::give_up}, Case{"ERR what", Remedy::give_up}}) {
        send();
        const Verdict verdict = adoption.on_reply(error(text));
        CHECK(verdict.remedy == remedy);
        CHECK(verdict.reason == text);
        CHECK_FALSE(adoption.result());
    }
    CHECK(target() == "orizuru:{mail}:processing:old");
    CHECK(answer(adopted("orz:n0:1", {"a"})) == Remedy::none);
    CHECK(adoption.result()->list == List{"a"});
}

TEST_CASE_FIXTURE(Fixture, "a reply of the wrong type ends the connection, not the adoption") {
    for (const std::string_view bytes :
         {":1\r\n", "+OK\r\n", "$1\r\na\r\n", "$-1\r\n", "*0\r\n", "*1\r\n$1\r\na\r\n",
          "*2\r\n:1\r\n*0\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$0\r\n\r\n*1\r\n:1\r\n",
          "*2\r\n$0\r\n\r\n*2\r\n$1\r\na\r\n$-1\r\n", "*3\r\n$0\r\n\r\n*0\r\n:1\r\n"}) {
        CAPTURE(bytes);
        send();
        CHECK(answer(reply_of(bytes)) == Remedy::reconnect);
        CHECK_FALSE(adoption.result());
    }
}

} // namespace adoption_test
