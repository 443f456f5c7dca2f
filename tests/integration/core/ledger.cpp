// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The book that judges the tests of faults: the faults that it must find, and the cases that it
// must let pass.

#include "support/ledger.hpp"

#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace ledger_test {

using orizuru::test::Ledger;
using orizuru::test::Place;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;

struct Book {
    static RedisServer& server() {
        static RedisServer the_server;
        return the_server;
    }

    RedisClient redis{server().uri()};
    Ledger ledger{"q"};

    Book() { redis.flushall(); }

    void push_confirmed() {
        ledger.pushing("m");
        ledger.pushed("m");
    }
    /// Whether this is the only violation; with an empty text, whether there is none.
    bool finds(std::string_view word) {
        const std::vector<std::string> wrong = ledger.check(redis);
        return word.empty() ? wrong.empty() : wrong.size() == 1 && wrong[0].starts_with(word);
    }
};

TEST_CASE_FIXTURE(Book, "a message of which nobody knows more than that it was asked for may be "
                        "anywhere") {
    ledger.pushing("m");
    SUBCASE("not there") {}
    SUBCASE("there") { redis.lpush("q", "m"); }
    CHECK(finds(""));
}

TEST_CASE_FIXTURE(Book, "a confirmed message must be there once") {
    push_confirmed();
    SUBCASE("there") {
        redis.lpush("q", "m");
        CHECK(finds(""));
    }
    SUBCASE("missing") { CHECK(finds("LOST")); }
    SUBCASE("twice") {
        redis.lpush("q", "m", "m");
        CHECK(finds("DUP"));
    }
}

TEST_CASE_FIXTURE(Book, "a message that came must stay, though its push was not confirmed") {
    ledger.pushing("m");
    ledger.handed_out("m");
    CHECK(finds("VANISHED"));
}

TEST_CASE_FIXTURE(Book, "an ack in doubt explains that a message is missing") {
    push_confirmed();
    ledger.handed_out("m");
    ledger.settling("m", Place::gone);
    CHECK(finds(""));
}

TEST_CASE_FIXTURE(Book,
                  "a message that came again, or was settled elsewhere, was not acked before") {
    push_confirmed();
    ledger.handed_out("m");
    ledger.settling("m", Place::gone);
    SUBCASE("it came again") { ledger.handed_out("m"); }
    SUBCASE("it was pushed on") {
        ledger.settling("m", Place::other);
        ledger.settled("m", Place::other);
    }
    CHECK(finds("LOST"));
}

TEST_CASE_FIXTURE(
    Book, "a message that came again is not where an earlier settlement would have brought it") {
    push_confirmed();
    ledger.settling("m", Place::other);
    ledger.handed_out("m");
    redis.lpush("other", "m");
    CHECK(finds("MISPLACED"));
}

TEST_CASE_FIXTURE(Book, "a late answer to an earlier owner says nothing of the later one's ack") {
    push_confirmed();
    ledger.settling("m", Place::gone);
    ledger.handed_out("m");
    ledger.settling("m", Place::gone);
    ledger.not_settled("m", Place::gone);
    CHECK(finds(""));
}

TEST_CASE_FIXTURE(Book, "a message that its producer repeats has a few copies") {
    ledger.pushing("m");
    ledger.may_repeat("m");
    ledger.pushed("m");
    SUBCASE("of which one came, and another may have been acked") {
        ledger.settling("m", Place::gone);
        ledger.handed_out("m");
        CHECK(finds(""));
    }
    SUBCASE("of which one must be there") { CHECK(finds("LOST")); }
    SUBCASE("and not any number") {
        redis.lpush("q", std::vector<std::string>(10, "m"));
        CHECK(finds(""));
        ledger.settling("m", Place::gone);
        ledger.settled("m", Place::gone);
        CHECK(finds("DUP"));
    }
}

} // namespace ledger_test
