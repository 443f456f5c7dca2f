// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/sha1.hpp>
#include <orizuru/script.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace script_test {

using orizuru::Script;

static_assert(std::is_nothrow_copy_constructible_v<Script>);
static_assert(!std::is_convertible_v<std::string_view, Script>);

constexpr std::string_view body = "redis.call('LPUSH', KEYS[1], payload)";

bool holds(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

TEST_CASE("the whole script has the body on lines of its own, as a function's") {
    const Script script(body);
    CHECK(holds(script.source(),
                "local function body(KEYS, ARGV, payload)\n" + std::string(body) + "\nend\n"));
}

TEST_CASE("a body that ends in a comment does not swallow what follows") {
    CHECK(holds(Script("-- nothing").source(), "\n-- nothing\nend\n"));
}

TEST_CASE("the script runs when memory is full: its first line says so") {
    CHECK(Script(body).source().starts_with("#!lua flags=allow-oom\n"));
}

TEST_CASE("the header is checked before the body runs, the message removed after it") {
    const std::string source = Script(body).source();
    const auto checked = source.find("ARGV[1] then");
    const auto run = source.find("pcall(body, {unpack(KEYS, 2)}");
    const auto removed = source.find("redis.call('LREM', p, -1, ARGV[2])");
    REQUIRE(removed != std::string::npos);
    CHECK(checked < run);
    CHECK(run < removed);
}

TEST_CASE("a script's name is the SHA-1 of its source") {
    const Script script(body);
    const auto digits = orizuru::detail::sha1_hex(script.source());
    CHECK(script.sha1() == std::string_view(digits.data(), digits.size()));
    CHECK(script.sha1() == Script(body).sha1());
    CHECK(script.sha1() != Script("return 1").sha1());
}

TEST_CASE("copies share one text, which outlives the first of them") {
    auto first = std::make_unique<Script>(body);
    const Script second = *first;
    const std::string* const text = &first->source();
    first.reset();
    CHECK(&second.source() == text);
    CHECK(holds(second.source(), body));
}

} // namespace script_test
