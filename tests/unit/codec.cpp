// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/codec.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <string>
#include <string_view>

namespace {

struct Plain {};       // no Codec at all
struct Text {};        // Codec in the simple form
struct Appended {};    // Codec in the fast form
struct WriteOnly {};   // only encode
struct ReadOnly {};    // only decode
struct WrongResult {}; // decode gives something else, encode something that is no string

} // namespace

template <>
struct orizuru::Codec<Text> {
    static std::string encode(const Text&) { return "text"; }
    static Text decode(std::string_view) { return {}; }
};
template <>
struct orizuru::Codec<Appended> {
    static void encode(const Appended&, std::string& out) { out += "appended"; }
    static Appended decode(std::string_view, Scratch&) { return {}; }
};
template <>
struct orizuru::Codec<WriteOnly> {
    static const char* encode(const WriteOnly&) { return "converts to std::string"; }
};
template <>
struct orizuru::Codec<ReadOnly> {
    static ReadOnly decode(std::string_view) { return {}; }
};
template <>
struct orizuru::Codec<WrongResult> {
    static int encode(const WrongResult&) { return 1; }
    static Text decode(std::string_view) { return {}; }
};

namespace {

using orizuru::Codec;
using orizuru::MessageDecodable;
using orizuru::MessageEncodable;
using orizuru::Raw;
using orizuru::Scratch;

static_assert(MessageEncodable<Raw> && MessageDecodable<Raw>);
static_assert(MessageEncodable<Text> && MessageDecodable<Text>);
static_assert(MessageEncodable<Appended> && MessageDecodable<Appended>);
static_assert(MessageEncodable<WriteOnly> && !MessageDecodable<WriteOnly>);
static_assert(!MessageEncodable<ReadOnly> && MessageDecodable<ReadOnly>);
static_assert(!MessageEncodable<Plain> && !MessageDecodable<Plain>);
static_assert(!MessageEncodable<WrongResult> && !MessageDecodable<WrongResult>);
// Without msgpack.hpp nothing but Raw has a Codec.
static_assert(!MessageEncodable<std::string> && !MessageDecodable<std::string>);
static_assert(!MessageEncodable<int> && !MessageDecodable<int>);
static_assert(std::equality_comparable<Raw>);

struct Counted {
    static inline int made = 0;
    Counted() { ++made; }
    int value = 0;
};

} // namespace

TEST_CASE("Raw passes any bytes through, in both directions") {
    std::string all;
    for (int byte = 0; byte < 256; ++byte) {
        all += static_cast<char>(byte);
    }
    for (const std::string& bytes : {std::string(), std::string(1, '\0'), all}) {
        std::string out;
        Codec<Raw>::encode(Raw{bytes}, out);
        CHECK(out == bytes);
        CHECK(Codec<Raw>::decode(out) == Raw{bytes});
    }
}

TEST_CASE("Raw is written behind what is there already") {
    std::string out = "before ";
    Codec<Raw>::encode(Raw{"after"}, out);
    CHECK(out == "before after");
}

TEST_CASE("a scratch keeps its object, and makes a new one for another type") {
    Counted::made = 0;
    Scratch scratch;
    scratch.as<Counted>().value = 7;
    CHECK(scratch.as<Counted>().value == 7);
    CHECK(Counted::made == 1);
    CHECK(scratch.as<std::string>().empty());
    scratch.as<std::string>() = "kept";
    CHECK(scratch.as<std::string>() == "kept");
    CHECK(scratch.as<Counted>().value == 0);
    CHECK(Counted::made == 2);
}
