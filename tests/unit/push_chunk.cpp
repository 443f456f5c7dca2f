// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/redis/wire.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace push_chunk_test {

using orizuru::detail::PushChunk;

void add(PushChunk& chunk, const std::string& payload) {
    const auto one = [&](std::string& out) {
        out += payload;
        return true;
    };
    CHECK(chunk.add(one));
}

/// The same command written by the book.
std::string lpush(const std::string& key, const std::vector<std::string>& payloads) {
    std::string out;
    orizuru::detail::begin_command(out, payloads.size() + 2);
    orizuru::detail::append_argument(out, "LPUSH");
    orizuru::detail::append_argument(out, key);
    for (const std::string& payload : payloads) {
        orizuru::detail::append_argument(out, payload);
    }
    return out;
}

TEST_CASE("a chunk is an LPUSH of its messages") {
    PushChunk chunk("mail");
    CHECK(chunk.empty());
    add(chunk, "hello");
    CHECK(chunk.command() == "*3\r\n$5\r\nLPUSH\r\n$4\r\nmail\r\n$5\r\nhello\r\n");
    add(chunk, "");
    CHECK(chunk.command() == "*4\r\n$5\r\nLPUSH\r\n$4\r\nmail\r\n$5\r\nhello\r\n$0\r\n\r\n");
    CHECK(chunk.size() == 2);
}

TEST_CASE("the largest message can be taken out, wherever it is, or all from it on") {
    const std::vector<std::string> all{"",  "\n$99\r\n",           std::string(120, 'x'),
                                       "b", std::string(120, 'y'), std::string(1000, '\n')};
    std::vector<std::string> left = all;
    PushChunk chunk("q");
    PushChunk cut("q");
    for (const std::string& payload : all) {
        add(chunk, payload);
        add(cut, payload);
    }
    for (const std::size_t at : {5U, 2U, 3U, 1U, 1U, 0U}) { // the first of two equal ones
        CHECK(chunk.largest() == left[at]);
        chunk.remove_largest();
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
        CHECK(chunk.command() == lpush("q", left));
    }
    CHECK(chunk.empty());
    cut.cut_at_largest();
    CHECK(cut.command() == lpush("q", {all.begin(), all.begin() + 5}));
    cut.cut_at_largest();
    CHECK(cut.command() == lpush("q", {all.begin(), all.begin() + 2}));
    add(cut, "more");
    CHECK(cut.command() == lpush("q", {all[0], all[1], "more"}));
}

TEST_CASE("lengths of any number of digits follow each other in any order") {
    // Each length comes behind each other one, itself included.
    const std::vector<std::size_t> lengths{0, 9, 10, 99, 100, 999, 1000, 9999, 10000};
    std::vector<std::string> payloads;
    PushChunk chunk("q");
    for (const std::size_t one : lengths) {
        for (const std::size_t other : lengths) {
            for (const std::size_t length : {one, other}) {
                std::string payload(length, static_cast<char>('a' + payloads.size() % 26));
                if (length > 1) {
                    payload.front() = '\r';
                    payload.back() = '\n';
                }
                payloads.push_back(payload);
                add(chunk, payload);
            }
        }
    }
    CHECK(chunk.command() == lpush("q", payloads));
}

TEST_CASE("the count is written with as many digits as it has") {
    PushChunk chunk("q");
    std::vector<std::string> payloads;
    while (payloads.size() < PushChunk::most_messages) {
        payloads.push_back(std::to_string(payloads.size()));
        add(chunk, payloads.back());
        REQUIRE(chunk.command() == lpush("q", payloads));
    }
    CHECK(chunk.command().substr(0, 7) == "*1002\r\n");
}

TEST_CASE("a chunk is full at the most messages or the most bytes") {
    PushChunk chunk("q");
    for (std::size_t i = 1; i < 10; ++i) {
        add(chunk, "x");
        CHECK_FALSE(chunk.full(10));
    }
    add(chunk, "x");
    CHECK(chunk.full(10));
    CHECK_FALSE(chunk.full());
    add(chunk, std::string(PushChunk::most_bytes, 'x'));
    CHECK(chunk.full());
}

TEST_CASE("a message that cannot be encoded to its end leaves the chunk as it was") {
    PushChunk chunk("q");
    add(chunk, "before");
    const auto fail = [](std::string& out) -> bool {
        out += std::string(100'000, 'x');
        throw std::range_error("half a message");
    };
    CHECK_THROWS_AS(chunk.add(fail), std::range_error);
    CHECK(chunk.size() == 1);
    CHECK(chunk.command() == lpush("q", {"before"}));
    add(chunk, "behind");
    CHECK(chunk.command() == lpush("q", {"before", "behind"}));
}

TEST_CASE("a cleared chunk begins anew") {
    PushChunk chunk("q");
    add(chunk, std::string(5000, 'x'));
    CHECK(chunk.command() == lpush("q", {std::string(5000, 'x')}));
    chunk.clear();
    CHECK(chunk.empty());
    CHECK_FALSE(chunk.full(1));
    add(chunk, "a");
    CHECK(chunk.command() == lpush("q", {"a"}));
}

} // namespace push_chunk_test
