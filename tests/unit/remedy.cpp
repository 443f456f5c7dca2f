// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace remedy_test {

using orizuru::Reply;
using orizuru::detail::Remedy;
using orizuru::detail::remedy_for;

TEST_CASE("what passes by itself is waited for") {
    for (const std::string_view code :
         {"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MISCONF", "NOREPLICAS", "OOM"}) {
        CAPTURE(code);
        CHECK(remedy_for(code, code) == Remedy::back_off);
    }
}

TEST_CASE("a server that cannot serve at present is connected to again") {
    for (const std::string_view code : {"READONLY", "MASTERDOWN", "UNBLOCKED"}) {
        CAPTURE(code);
        CHECK(remedy_for(code, code) == Remedy::reconnect);
    }
}

TEST_CASE("rights and configuration are for a person to mend") {
    for (const std::string_view code :
         {"NOAUTH", "WRONGPASS", "NOPERM", "MOVED", "ASK", "CROSSSLOT", "TLS"}) {
        CAPTURE(code);
        CHECK(remedy_for(code, code) == Remedy::give_up);
    }
}

TEST_CASE("a missing script is sent in full") {
    CHECK(remedy_for("NOSCRIPT", "NOSCRIPT") == Remedy::send_body);
}

TEST_CASE("a script that somebody has killed had written nothing: it is tried again") {
    const std::string text = "ERR Script killed by user with SCRIPT KILL... script: 5065ac0e, on "
                             "@user_script:1.";
    CHECK(remedy_for(Reply{Reply::Type::error, 0, text, {}}) == Remedy::back_off);
    CHECK(remedy_for(orizuru::detail::reply_error("EVAL 'q'", text)) == Remedy::back_off);
    const std::string other = "ERR Error running script";
    CHECK(remedy_for(Reply{Reply::Type::error, 0, other, {}}) == Remedy::recover);
    CHECK(remedy_for(orizuru::detail::reply_error("EVAL 'q'", other)) == Remedy::recover);
}

TEST_CASE("where a Cluster names another node, one connects again; else a person has to") {
    const std::string text = "MOVED 1 127.0.0.1:7000";
    const std::string followed = text + std::string(orizuru::detail::redirected);
    CHECK(remedy_for(Reply{Reply::Type::error, 0, followed, {}}) == Remedy::reconnect);
    CHECK(remedy_for(orizuru::detail::reply_error("LPUSH 'q'", followed)) == Remedy::reconnect);
    CHECK(remedy_for(Reply{Reply::Type::error, 0, text, {}}) == Remedy::give_up);
    CHECK(remedy_for(orizuru::detail::reply_error("LPUSH 'q'", text)) == Remedy::give_up);
}

TEST_CASE("everything else, and what only resembles a code, has no class of its own") {
    for (const std::string_view code : {"", "ERR", "WRONGTYPE", "STALE", "REFUSED", "BUSYNAME",
                                        "BUSYKEY", "loading", "OOMX", "OO", " OOM", "EXECABORT"}) {
        CAPTURE(code);
        CHECK(remedy_for(code, code) == Remedy::recover);
    }
}

} // namespace remedy_test
