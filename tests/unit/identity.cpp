// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/hex.hpp"

#include <orizuru/detail/base/identity.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace identity_test {

using namespace orizuru::detail;
using namespace std::string_literals;
using orizuru::test::is_hex;

TEST_CASE("an id is label, host, process and 16 hexadecimal digits, parted by colons") {
    const Identity identity = make_identity("worker-1");
    const std::string& id = identity.id;
    CHECK(std::ranges::count(id, ':') == 3);
    CHECK(id.starts_with("worker-1:"));
    CHECK(id.ends_with(":" + std::to_string(::getpid()) + id.substr(id.size() - 17)));
    CHECK(is_hex(std::string_view(id).substr(id.size() - 16), 16));
    CHECK(is_hex(identity.nonce, 16));
    CHECK(std::ranges::all_of(id, [](char c) { return c > ' ' && c <= '~'; }));
}

TEST_CASE("an id is told from what else may stand in its place in a key") {
    CHECK(is_id(make_identity("worker-1").id));
    CHECK(is_id("worker:host:1:0123456789abcdef"));
    for (const std::string_view text :
         {"", ":", "unack", "worker:unack", "worker:host:1:unack", "worker:host:1:dead",
          "worker:host:1:0123456789abcde", "worker:host:1:0123456789abcdefa",
          "worker:host:1:0123456789ABCDEF", "host:1:0123456789abcdef", "0123456789abcdef",
          "a:worker:host:1:0123456789abcdef", "{a}:host:1:0123456789abcdef"}) {
        CAPTURE(text);
        CHECK_FALSE(is_id(text));
    }
}

TEST_CASE("no two identities share an id or a nonce, and no id contains its nonce") {
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        const Identity identity = make_identity("w");
        CHECK(seen.insert(identity.id.substr(identity.id.size() - 16)).second);
        CHECK(seen.insert(identity.nonce).second);
        CHECK(identity.id.find(identity.nonce) == std::string::npos);
    }
}

TEST_CASE("a header is the nonce and a version, and is read back") {
    const Identity identity{"w:h:1:f", "0123456789abcdef"};
    CHECK(identity.header(0) == "orz:0123456789abcdef:0");
    CHECK(identity.header(18446744073709551615U) == "orz:0123456789abcdef:18446744073709551615");
    CHECK(identity.header(7).starts_with(identity.header_prefix()));
    for (const std::uint64_t version : {0ULL, 1ULL, 4294967296ULL, 18446744073709551615ULL}) {
        CHECK(identity.version(identity.header(version)) == version);
    }
}

TEST_CASE("what is not a header of this identity has no version") {
    const Identity identity{"w:h:1:f", "0123456789abcdef"};
    const std::string prefix = identity.header_prefix();
    for (const std::string& text :
         {std::string(), std::string("orz:"), prefix, prefix + "-1", prefix + "+1", prefix + " 1",
          prefix + "1 ", prefix + "1x", prefix + "0x1", prefix + "1\n", " " + prefix + "1",
          prefix + "18446744073709551616", prefix + std::string(100, '9'),
          std::string("orz:fedcba9876543210:1"), std::string("ORZ:0123456789abcdef:1"),
          std::string("orz:0123456789abcdef1")}) {
        CAPTURE(text);
        CHECK(identity.version(text) == std::nullopt);
    }
    CHECK(identity.version(Identity{"w:h:1:f", "1123456789abcdef"}.header(1)) == std::nullopt);
    CHECK(identity.version(prefix + "1\0"s) == std::nullopt);
}

TEST_CASE("a label is 1 to 100 letters, digits, underscores, dots and hyphens") {
    CHECK_NOTHROW(check_label("w"));
    CHECK_NOTHROW(check_label("Worker_7.eu-west"));
    CHECK_NOTHROW(check_label(std::string(100, 'x')));
    using namespace std::string_view_literals;
    for (const std::string_view label : {""sv, " "sv, "a b"sv, "a:b"sv, "a{b}"sv, "a/b"sv, "a\n"sv,
                                         "caf\xc3\xa9"sv, "a\0"sv, "*"sv}) {
        CAPTURE(label);
        CHECK_THROWS_AS(check_label(label), std::invalid_argument);
    }
    CHECK_THROWS_AS(check_label(std::string(101, 'x')), std::invalid_argument);
}

TEST_CASE("the refusal of an endless label is short") {
    try {
        check_label(std::string(1'000'000, 'x'));
        FAIL_CHECK("accepted");
    } catch (const std::invalid_argument& error) {
        CHECK(std::string_view(error.what()).size() < 300);
    }
}

} // namespace identity_test
