// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/shards/shard_layout.hpp>
#include <orizuru/detail/shards/shard_names.hpp>
#include <orizuru/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace shard_names_test {

using orizuru::detail::cluster_slot;
using orizuru::detail::shard_names;
using orizuru::detail::shard_of_slot;
using orizuru::detail::ShardLayout;

TEST_CASE("a key's hash slot is that of the specification") {
    CHECK(cluster_slot("123456789") == 0x31c3);
    CHECK(cluster_slot("") == 0);
}

TEST_CASE("each shard's name lies in its range of the slots, and no name comes twice") {
    for (const std::size_t count : {1, 2, 3, 6, 12, 16, 100, 1024}) {
        CAPTURE(count);
        const std::vector<std::string> names = shard_names("orders", count);
        REQUIRE(names.size() == count);
        for (std::size_t i = 0; i < count; ++i) {
            CHECK(shard_of_slot(cluster_slot(names[i]), count) == i);
        }
        CHECK(std::set<std::string>(names.begin(), names.end()).size() == count);
    }
}

TEST_CASE("twice as many shards contain the former ones, each in its half") {
    for (const std::size_t count : {1, 3, 16, 512}) {
        const std::vector<std::string> few = shard_names("orders", count);
        const std::vector<std::string> many = shard_names("orders", 2 * count);
        for (std::size_t i = 0; i < count; ++i) {
            CHECK((few[i] == many[2 * i] || few[i] == many[2 * i + 1]));
        }
    }
}

TEST_CASE("a layout is read as it was written") {
    ShardLayout layout("q", "16 32 @7");
    CHECK(layout.written() == 16);
    CHECK(layout.reads(32));
    CHECK_FALSE(layout.reads(3));
    CHECK(layout.text() == "16 32 @7");
    CHECK(layout.change() == 7);
    layout.read(6);
    layout.read(6);
    layout.write(6);
    layout.advance();
    CHECK(layout.text() == "6 16 32 @8");
    const std::vector<std::string> names = layout.names("q");
    for (const std::size_t count : {6, 16, 32}) {
        for (const std::string& name : shard_names("q", count)) {
            CHECK(std::ranges::count(names, name) == 1);
        }
    }
}

TEST_CASE("what is no layout is an error that names the queue") {
    for (const char* const text : {"", "x", "4", "0 @1", "1025 @1", "4  @1", " 4 @1", "4  4 @1",
                                   "-1 @1", "4,4 @1", "04 @1", "4 @", "4 @x", "4 @01", "@1"}) {
        CAPTURE(text);
        CHECK_THROWS_WITH_AS(ShardLayout("orders", text), doctest::Contains("orders"),
                             orizuru::ProtocolError);
    }
}

} // namespace shard_names_test
