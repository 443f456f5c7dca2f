// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/sha1.hpp>
#include <orizuru/script.hpp>

#include <doctest/doctest.h>

#include <barrier>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace script_test {

using orizuru::Script;
using orizuru::detail::CachedScript;

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
    const Script script(body);
    const std::string_view source = script.source();
    const auto checked = source.find("ARGV[1] then");
    const auto run = source.find("pcall(body, {unpack(KEYS, 2, counts - 1)}");
    const auto removed = source.find("redis.call('LREM', p, -1, ARGV[2])");
    REQUIRE(removed != std::string_view::npos);
    CHECK(checked < run);
    CHECK(run < removed);
}

TEST_CASE("a script's name is the SHA-1 of its source") {
    const Script script(body);
    const auto digits = orizuru::detail::sha1_hex(script.source());
    CHECK(script.sha1() == std::string_view(digits));
    CHECK(script.sha1() == Script(body).sha1());
    CHECK(script.sha1() != Script("return 1").sha1());
}

TEST_CASE("threads that ask for a name for the first time all get it") {
    const CachedScript script(body);
    std::vector<std::string> names(4);
    std::barrier<> all(4);
    std::vector<std::jthread> threads;
    for (std::string& name : names) {
        threads.emplace_back([&] {
            all.arrive_and_wait();
            name = std::string_view(script.sha1());
        });
    }
    threads.clear();
    const auto digits = orizuru::detail::sha1_hex(body);
    CHECK(names == std::vector(4, std::string(std::string_view(digits))));
    CHECK(std::string_view(script.sha1()) == names[0]); // read, not computed
}

TEST_CASE("the library's own scripts are what it makes of a user's body") {
    const Script own = orizuru::detail::push_body();
    const std::string_view source = own.source();
    const std::string_view begin = "local function body(KEYS, ARGV, payload)\n";
    const auto first = source.find(begin) + begin.size();
    const auto last = source.find("\nend\nlocal ran");
    REQUIRE(last != std::string_view::npos);
    CHECK(source == Script(source.substr(first, last - first)).source());
    CHECK(source.data() == orizuru::detail::push_body().source().data());
}

TEST_CASE("copies share one text, which outlives the first of them") {
    auto first = std::make_unique<Script>(body);
    const Script second = *first;
    const char* const text = first->source().data();
    first.reset();
    CHECK(second.source().data() == text);
    CHECK(holds(second.source(), body));
}

} // namespace script_test
