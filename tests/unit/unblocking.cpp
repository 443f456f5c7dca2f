// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/consumer/unblocking.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <string>

namespace unblocking_test {

using orizuru::Reply;
using orizuru::detail::Unblocking;
using Meaning = Unblocking::Meaning;
using Type = Reply::Type;

const Reply unblocked{Type::error, 0, "UNBLOCKED client unblocked via CLIENT UNBLOCK", {}};
const Reply refused{Type::error, 0, "BUSY a script runs", {}};
const Reply marker{Type::integer, 7, {}, {}};
const Reply message{Type::string, 0, "a", {}};
const Reply nil;

TEST_CASE("while nothing was unblocked each reply is BLMOVE's") {
    Unblocking unblocking;
    for (const Reply& reply : {message, nil, refused, marker}) {
        CHECK(unblocking.read(reply, true) == Meaning::result);
    }
    CHECK_FALSE(unblocking.pending());
}

TEST_CASE("a change of Redis' role is no unblocking") {
    Unblocking unblocking;
    const Reply forced{Type::error, 0, "UNBLOCKED force unblock from blocking operation", {}};
    CHECK(unblocking.read(forced, true) == Meaning::result);
}

TEST_CASE("a BLMOVE that was unblocked is over when the marker behind it is answered") {
    Unblocking unblocking;
    CHECK(unblocking.read(unblocked, true) == Meaning::unblocked);
    CHECK(unblocking.pending());
    CHECK(unblocking.read(marker, true) == Meaning::ended);
    CHECK_FALSE(unblocking.pending());
}

TEST_CASE("a BLMOVE that ran all the same is answered before the marker") {
    for (const Reply& result : {message, nil}) {
        Unblocking unblocking;
        CHECK(unblocking.read(unblocked, true) == Meaning::unblocked);
        CHECK(unblocking.read(result, true) == Meaning::result);
        CHECK(unblocking.pending());
        CHECK(unblocking.read(marker, false) == Meaning::nothing);
        CHECK_FALSE(unblocking.pending());
    }
}

TEST_CASE("a BLMOVE that was unblocked twice is over with the second marker") {
    Unblocking unblocking;
    CHECK(unblocking.read(unblocked, true) == Meaning::unblocked);
    CHECK(unblocking.read(unblocked, true) == Meaning::unblocked);
    CHECK(unblocking.read(marker, true) == Meaning::nothing);
    CHECK(unblocking.read(marker, true) == Meaning::ended);
}

TEST_CASE("an error where a marker's reply may be leaves a doubt, unless BLMOVE is answered") {
    Unblocking unblocking;
    CHECK(unblocking.read(unblocked, true) == Meaning::unblocked);
    CHECK(unblocking.read(refused, true) == Meaning::doubt);
    unblocking.reset();
    CHECK(unblocking.read(unblocked, true) == Meaning::unblocked);
    CHECK(unblocking.read(message, true) == Meaning::result);
    CHECK(unblocking.read(refused, false) == Meaning::nothing);
    CHECK_FALSE(unblocking.pending());
}

TEST_CASE("a reply that nobody asked for leaves a doubt") {
    for (const Reply& reply : {message, nil, refused, marker, unblocked}) {
        Unblocking unblocking;
        CHECK(unblocking.read(reply, false) == Meaning::doubt);
    }
}

} // namespace unblocking_test
