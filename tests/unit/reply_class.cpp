// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/redis/reply_class.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace reply_class_test {

using orizuru::Reply;
using orizuru::detail::classify;
using orizuru::detail::ReplyClass;

TEST_CASE("what passes by itself is waited for") {
    for (const std::string_view code :
         {"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MISCONF", "NOREPLICAS", "OOM"}) {
        CAPTURE(code);
        CHECK(classify(code) == ReplyClass::passing);
    }
}

TEST_CASE("a server that cannot serve at present is connected to again") {
    for (const std::string_view code : {"READONLY", "MASTERDOWN", "UNBLOCKED"}) {
        CAPTURE(code);
        CHECK(classify(code) == ReplyClass::elsewhere);
    }
}

TEST_CASE("rights and configuration are for a person to mend") {
    for (const std::string_view code :
         {"NOAUTH", "WRONGPASS", "NOPERM", "MOVED", "ASK", "CROSSSLOT"}) {
        CAPTURE(code);
        CHECK(classify(code) == ReplyClass::rights);
    }
}

TEST_CASE("a missing script is sent in full") {
    CHECK(classify("NOSCRIPT") == ReplyClass::no_script);
}

TEST_CASE("a script that somebody has killed had written nothing: it is tried again") {
    const std::string text = "ERR Script killed by user with SCRIPT KILL... script: 5065ac0e, on "
                             "@user_script:1.";
    CHECK(classify(Reply{Reply::Type::error, 0, text, {}}) == ReplyClass::passing);
    CHECK(classify(orizuru::detail::reply_error("EVAL 'q'", text)) == ReplyClass::passing);
    const std::string other = "ERR Error running script";
    CHECK(classify(Reply{Reply::Type::error, 0, other, {}}) == ReplyClass::other);
    CHECK(classify(orizuru::detail::reply_error("EVAL 'q'", other)) == ReplyClass::other);
}

TEST_CASE("everything else, and what only resembles a code, has no class of its own") {
    for (const std::string_view code : {"", "ERR", "WRONGTYPE", "STALE", "REFUSED", "BUSYNAME",
                                        "BUSYKEY", "loading", "OOMX", "OO", " OOM", "EXECABORT"}) {
        CAPTURE(code);
        CHECK(classify(code) == ReplyClass::other);
    }
}

} // namespace reply_class_test
