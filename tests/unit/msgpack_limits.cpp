// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a hostile payload can make the decoder do. The program is linked with malloc and realloc
// replaced, since msgpack's zone calls them directly, and counts what is asked of them.

#include <orizuru/msgpack.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

std::size_t requested = 0;

} // namespace

extern "C" {
void* __real_malloc(std::size_t size);
void* __real_realloc(void* memory, std::size_t size);

void* __wrap_malloc(std::size_t size) {
    requested += size;
    return __real_malloc(size);
}
void* __wrap_realloc(void* memory, std::size_t size) {
    requested += size;
    return __real_realloc(memory, size);
}
}

void* operator new(std::size_t size) {
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) {
        return memory;
    }
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace std::string_literals;
using orizuru::Codec;
using orizuru::Scratch;

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t most_values = std::size_t{4} << 20;
constexpr std::size_t most_levels = 64;
constexpr std::size_t value_size = sizeof(msgpack::object);

/// Takes whatever msgpack has unpacked, so that only the limits can refuse it.
struct Anything {
    template <class Packer>
    void msgpack_pack(Packer& packer) const {
        packer.pack_nil();
    }
    void msgpack_unpack(const msgpack::object&) {}
};

enum class Colour : std::uint8_t { red = 7 };

struct Order {
    std::uint64_t id = 0;
    std::string name;

    MSGPACK_DEFINE(id, name)
};

struct Tree {
    std::vector<Tree> children;

    MSGPACK_DEFINE(children)
};

std::string big_endian(std::uint32_t number) {
    return {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
            static_cast<char>(number >> 8), static_cast<char>(number)};
}

std::string header(char type, std::size_t count) {
    return type + big_endian(static_cast<std::uint32_t>(count));
}
std::string array_of(std::size_t count) { return header('\xdd', count); }
std::string map_of(std::size_t count) { return header('\xdf', count); }
std::string string_of(std::size_t size) { return header('\xdb', size) + std::string(size, 'x'); }

std::string repeated(std::size_t times, std::string_view what) {
    std::string text;
    while (times-- > 0) {
        text += what;
    }
    return text;
}

struct Outcome {
    bool accepted = false;
    std::size_t memory = 0; ///< all that was asked for, also what was given back
};

template <class T = Anything>
Outcome decode(const std::string& bytes) {
    Scratch scratch;
    const std::size_t before = requested;
    bool accepted = true;
    try {
        static_cast<void>(Codec<T>::decode(bytes, scratch));
    } catch (const std::exception&) {
        accepted = false;
    }
    return {accepted, requested - before};
}

/// For a payload that must be refused at little cost.
template <class T = Anything>
void refuses(const std::string& bytes) {
    const Outcome outcome = decode<T>(bytes);
    CHECK_FALSE(outcome.accepted);
    CHECK(outcome.memory < 16 * mebibyte);
}

} // namespace

TEST_CASE("memory is counted in this program, msgpack's zone included") {
    std::string bytes = array_of(1000) + std::string(1000, '\0');
    CHECK(decode(bytes).memory >= 1000 * value_size);
    CHECK(decode<std::deque<std::string>>(array_of(1000) + std::string(1000, '\xa0')).memory >=
          1000 * (value_size + sizeof(std::string)));
}

TEST_CASE("nothing is allocated but what the decoded value itself needs") {
    Scratch scratch;
    const auto taken_by = [](const auto& action) {
        const std::size_t before = requested;
        action();
        return requested - before;
    };
    for (const std::string& name : {"short"s, std::string(100, 'x')}) {
        std::string bytes;
        Codec<Order>::encode({70000, name}, bytes);
        const auto decode = [&] { static_cast<void>(Codec<Order>::decode(bytes, scratch)); };
        decode(); // makes the zone
        CHECK(taken_by(decode) == taken_by([&] { const std::string copy = name; }));
    }
}

TEST_CASE("what a large tree took is given back at once, also when it is refused") {
    Scratch scratch;
    auto& zone = scratch.as<msgpack::zone>();
    const void* const chunk = zone.allocate_no_align(1);
    zone.clear();
    const std::string large = array_of(10'000) + std::string(10'000, '\0');
    for (const std::string& bytes : {large, large + "behind it"}) {
        const std::size_t before = requested;
        try {
            static_cast<void>(Codec<Anything>::decode(bytes, scratch));
        } catch (const std::exception&) {
            REQUIRE(bytes != large);
        }
        REQUIRE(requested - before >= 10'000 * value_size);
        // Once cleared, a zone has its first chunk and no other.
        CHECK(zone.allocate_no_align(1) == chunk);
    }
}

TEST_CASE("an announced size beyond the payload is refused and reserves nothing") {
    for (const std::size_t count :
         {std::size_t{6}, std::size_t{1} << 28, std::size_t{0xffffffff}}) {
        CAPTURE(count);
        for (const char type : {'\xdd', '\xdf', '\xdb', '\xc6', '\xc9'}) {
            refuses(header(type, count));
            refuses<std::vector<int>>(header(type, count));
            refuses<std::map<int, int>>(header(type, count));
            refuses<std::string>(header(type, count));
            refuses(array_of(2) + header(type, count) + "\0"s);
        }
    }
}

TEST_CASE("a map that announces more pairs than half its bytes is refused") {
    const std::string pairs(200, '\0');
    CHECK(decode(map_of(100) + pairs).accepted);
    refuses(map_of(103) + pairs);
    // Before anything is reserved for them.
    CHECK(decode(map_of(2003) + std::string(4000, '\0')).memory < 2003 * value_size);
}

TEST_CASE(
    "arrays in arrays that announce the whole payload each are refused before they are made") {
    for (const std::size_t size : {500U, 8'000U, 9'000U, 100'000U, 999'000U, 16'000'000U}) {
        CAPTURE(size);
        refuses(repeated(64, array_of(size)) + std::string(size, '\0'));
        refuses(array_of(64) + repeated(63, array_of(size)) + std::string(size, '\0'));
        refuses(repeated(64, map_of(size / 2)) + std::string(size, '\0'));
        refuses(array_of(size) + string_of(size));
        refuses(map_of(size / 2) + string_of(size));
        // Each is as long as announced, but is not there in full.
        refuses(repeated(64, array_of(size)));
    }
}

TEST_CASE("4 Mi values are read, one more is refused") {
    const std::string most = array_of(most_values - 1) + std::string(most_values - 1, '\0');
    const Outcome outcome = decode(most);
    CHECK(outcome.accepted);
    // msgpack's zone rounds up to a power of two.
    CHECK(outcome.memory < most_values * 2 * value_size);
    refuses(array_of(most_values) + std::string(most_values, '\0'));
    refuses(array_of(16 * mebibyte) + std::string(16 * mebibyte, '\xc0'));
    refuses(map_of(most_values / 2) + std::string(most_values, '\0'));
    refuses<std::vector<std::map<int, int>>>(array_of(most_values) +
                                             std::string(most_values, '\x80'));
    refuses(array_of(2048) + repeated(2048, array_of(2048) + std::string(2048, '\0')));
    refuses(array_of(most_values / 2) + repeated(most_values / 2, "\x91\xc0"));
}

TEST_CASE("a payload over 16 MiB may have a value for each four bytes") {
    const std::size_t size = 20 * mebibyte;
    const auto payload = [](std::size_t values) {
        return array_of(values) + std::string(values - 1, '\0') + string_of(size - values - 9);
    };
    REQUIRE(payload(size / 4).size() == size);
    CHECK(decode(payload(size / 4 - 1)).accepted);
    refuses(payload(size / 4));
}

TEST_CASE("a flat array of numbers is bounded by its bytes alone, and makes no tree") {
    for (const std::size_t count : {std::size_t{10}, 16 * mebibyte}) {
        const std::string bytes = array_of(count) + std::string(count, '\x07');
        const Outcome outcome = decode<std::vector<std::int64_t>>(bytes);
        CHECK(outcome.accepted);
        CHECK(outcome.memory == count * sizeof(std::int64_t));
    }
    const std::string bytes = array_of(16 * mebibyte) + std::string(16 * mebibyte, '\x07');
    CHECK(decode<std::deque<float>>(bytes).accepted);
    CHECK(decode<std::vector<Colour>>(bytes).accepted);
    // What is not one is read as before.
    refuses<std::list<int>>(bytes);
    refuses<std::vector<std::optional<int>>>(bytes);
}

TEST_CASE("an array that is not all numbers is refused at little cost") {
    for (const std::string& other : {"\xa1x"s, "\x90"s, "\x81\xc0\xc0"s, "\xc1"s}) {
        CAPTURE(other);
        constexpr std::size_t count = 100'000;
        const std::string bytes = array_of(count) + std::string(count - 1, '\0') + other;
        refuses<std::vector<int>>(bytes);
        refuses<std::vector<int>>(bytes + "\0"s);
        refuses<std::vector<int>>(bytes.substr(0, count));
        refuses<std::vector<int>>(array_of(1) + other);
    }
    refuses<std::vector<std::int8_t>>(array_of(1) + "\xcd\1\1");
}

TEST_CASE("bytes are written exactly where they can be read again") {
    const auto written = [](const auto& value) {
        std::string bytes;
        Codec<std::remove_cvref_t<decltype(value)>>::encode(value, bytes);
        return bytes.size();
    };
    const auto nested = [](std::size_t trees) {
        Tree tree;
        for (std::size_t i = 1; i < trees; ++i) {
            Tree parent;
            parent.children.push_back(std::move(tree));
            tree = std::move(parent);
        }
        return tree;
    };
    CHECK(written(nested(most_levels / 2)) == most_levels);
    CHECK_THROWS_WITH_AS(written(nested(most_levels / 2 + 1)), "more than 64 levels",
                         std::invalid_argument);
    std::vector<std::optional<int>> values(most_values - 1);
    CHECK(written(values) == most_values + 4);
    values.emplace_back();
    CHECK_THROWS_WITH_AS(written(values), "more than 4194304 values", std::invalid_argument);
    CHECK(written(std::vector<int>(most_values)) == most_values + 5);
}

TEST_CASE("long strings are no values: a payload of the largest size is read") {
    const std::string bytes = array_of(2) + string_of(8 * mebibyte) + string_of(7 * mebibyte);
    const Outcome outcome = decode<std::vector<std::string>>(bytes);
    CHECK(outcome.accepted);
    CHECK(outcome.memory < bytes.size() + mebibyte);
}

TEST_CASE("64 levels are read, 65 refused, in small payloads and in large ones") {
    for (const std::size_t size : {1U, 10'000U, 2'000'000U}) {
        CAPTURE(size);
        for (const char* const level : {"\x91", "\x81\xc0"}) {
            CHECK(decode(repeated(most_levels, level) + string_of(size)).accepted);
            refuses(repeated(most_levels + 1, level) + string_of(size));
        }
        // Levels that have ended do not count.
        const std::string ended = repeated(100, "\x91\x81\xc0\x90");
        CHECK(decode(array_of(101) + ended + string_of(size)).accepted);
    }
    for (const std::size_t levels : {100U, 10'000U, 10'000'000U}) {
        refuses(std::string(levels, '\x91'));
        refuses(std::string(levels, '\x91') + '\xc0');
        refuses(repeated(levels, "\x81\xc0") + '\xc0');
    }
}

TEST_CASE("a recursive type cannot exhaust the stack") {
    CHECK(decode<Tree>(repeated(31, "\x91\x91") + "\x91\x90").accepted);
    refuses<Tree>(repeated(100'000, "\x91\x91") + "\x91\x90");
}

TEST_CASE("bytes behind the value are refused") {
    CHECK(decode<int>("\x07").accepted);
    for (const std::string& more : {"\0"s, "\x07"s, "\xc1"s, "\n"s, string_of(10'000)}) {
        refuses<int>("\x07" + more);
        refuses<std::vector<int>>(array_of(1) + "\x07" + more);
    }
}

TEST_CASE("nothing at all, and the byte that is never used, are refused") {
    refuses("");
    refuses<std::optional<int>>("");
    refuses("\xc1");
    refuses(array_of(1) + "\xc1");
    refuses(array_of(10'001) + "\xc1" + std::string(10'000, '\0'));
}

TEST_CASE("a value cut anywhere is refused") {
    using Value = std::map<std::string, std::vector<double>>;
    std::string bytes;
    Codec<Value>::encode({{"short", {}}, {std::string(300, 'k'), {0.5, 1e300}}}, bytes);
    REQUIRE(decode<Value>(bytes).accepted);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        refuses<Value>(bytes.substr(0, size));
    }
}

TEST_CASE("no single byte that is changed does harm") {
    using Value = std::map<std::string, std::vector<double>>;
    std::string bytes;
    Codec<Value>::encode({{"short", {}}, {"other", {0.5, 1e300}}}, bytes);
    for (std::size_t place = 0; place < bytes.size(); ++place) {
        for (int byte = 0; byte < 256; ++byte) {
            std::string changed = bytes;
            changed[place] = static_cast<char>(byte);
            REQUIRE(decode<Value>(changed).memory < mebibyte);
        }
    }
}
