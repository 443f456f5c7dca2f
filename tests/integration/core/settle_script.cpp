// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The script SETTLE alone: what it removes by each form of its arguments, and when it changes
// nothing.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/detail/mirror/scripts.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

namespace settle_script_test {

using orizuru::test::Answer;
using orizuru::test::contains;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::Texts;

struct List : QueueFixture {
    std::string list = processing("id");

    /// Oldest first.
    void hold(const Texts& messages) {
        redis.command({"RPUSH", list, "orz:n:0"});
        for (const std::string& message : messages) {
            redis.command({"LPUSH", list, message});
        }
    }
    Answer settle(RedisClient& client, const Texts& arguments) {
        Texts words{"EVAL",    std::string(orizuru::detail::settle_script.source()),
                    "1",       list,
                    "orz:n:0", "orz:n:1"};
        words.insert(words.end(), arguments.begin(), arguments.end());
        return client.try_command(words);
    }
    Texts left() { return oldest_first(list); }
};

TEST_CASE_FIXTURE(List, "SETTLE of all that is held goes by the length of the list") {
    hold({"a", "b"});
    SUBCASE("as long as it is known to be") {
        CHECK(settle(redis, {"-3"}).elements.empty());
        CHECK(left() == Texts{"orz:n:1"});
    }
    SUBCASE("longer") {
        CHECK(settle(redis, {"-2"}).elements.empty());
        CHECK(left() == Texts{"orz:n:1", "b"});
    }
    SUBCASE("shorter") {
        CHECK(settle(redis, {"-4"}).text == "STALE length");
        CHECK(left() == Texts{"orz:n:0", "a", "b"});
    }
}

TEST_CASE_FIXTURE(List, "SETTLE by runs leaves the others in their order") {
    Texts messages;
    for (int i = 0; i < 3000; ++i) {
        messages.push_back(std::to_string(i));
    }
    hold(messages);
    Texts wanted{"orz:n:1"};
    const auto stay = [&](std::ptrdiff_t first, std::ptrdiff_t last) {
        wanted.insert(wanted.end(), messages.begin() + first, messages.begin() + last);
    };
    SUBCASE("a few") {
        stay(2, 5);
        stay(10, 11);
        stay(12, 3000);
        CHECK(settle(redis, {"-3", "0", "3000", "3", "5", "1", "1"}).elements.empty());
    }
    SUBCASE("more than Lua can unpack, and to the list's end") {
        stay(0, 2990);
        CHECK(settle(redis, {"-1", "0", "3000", "2990", "10"}).elements.empty());
    }
    SUBCASE("of a list that is shorter") {
        wanted[0] = "orz:n:0";
        stay(0, 3000);
        CHECK(settle(redis, {"-1", "0", "3001", "2990", "11"}).text == "STALE length");
    }
    CHECK(left() == wanted);
}

TEST_CASE_FIXTURE(List, "SETTLE by runs changes nothing without each of its rights") {
    for (const std::string right : {"ltrim", "rpop", "rpush"}) {
        CAPTURE(right);
        redis.flushall();
        redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">x", "~*", "+@all", "-" + right});
        RedisClient clerk(uri);
        clerk.command({"AUTH", "clerk", "x"});
        hold({"a", "b", "c"});
        CHECK(contains(settle(clerk, {"-2", "0", "3", "1", "1"}).text, "NOPERM"));
        CHECK(left() == Texts{"orz:n:0", "a", "b", "c"});
    }
    redis.command({"ACL", "DELUSER", "clerk"});
}

} // namespace settle_script_test
