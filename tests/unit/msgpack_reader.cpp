// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Our reading of msgpack beside msgpack's own.

#include "support/hex.hpp"
#include "support/msgpack_itself.hpp"

#include <orizuru/detail/codec/msgpack_reader.hpp>
#include <orizuru/msgpack.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msgpack_reader_test {

/// Read from an array of one number.
enum class Boxed { none };

} // namespace msgpack_reader_test

template <>
struct msgpack::adaptor::convert<msgpack_reader_test::Boxed> {
    const msgpack::object& operator()(const msgpack::object& from,
                                      msgpack_reader_test::Boxed& value) const {
        value = static_cast<msgpack_reader_test::Boxed>(from.as<std::vector<int>>().at(0));
        return from;
    }
};

namespace msgpack_reader_test {

using namespace std::string_literals;
using orizuru::detail::MsgpackAppender;
using orizuru::detail::MsgpackReader;
using orizuru::test::hex;
using orizuru::test::same;
using orizuru::test::unpacked;

template <class Refusal, class Function>
std::optional<msgpack::object> unless_refused(Function read) {
    try {
        return read();
    } catch (const Refusal&) {
        return std::nullopt;
    }
}

/// Requires that we read the bytes as msgpack does. Whether they were accepted.
bool accepted_alike(const std::string& text) {
    CAPTURE(hex(text));
    // As many bytes as that and no zero behind them: sanitizers see one that is read too many.
    const std::vector<char> exact(text.begin(), text.end());
    const std::string_view bytes(exact.data(), exact.size());
    msgpack::zone our_zone;
    msgpack::zone their_zone;
    MsgpackReader reader(bytes, our_zone);
    const auto ours = unless_refused<std::invalid_argument>([&] { return reader.read(); });
    const auto theirs =
        unless_refused<msgpack::unpack_error>([&] { return unpacked(bytes, their_zone); });
    REQUIRE(ours.has_value() == theirs.has_value());
    REQUIRE((!ours || same(*ours, *theirs)));
    return ours.has_value();
}

using Random = std::mt19937_64; // the same numbers everywhere, unlike the distributions

std::string random_bytes(Random& random, std::size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) {
        byte = static_cast<char>(random());
    }
    return bytes;
}

void pack_random(msgpack::packer<MsgpackAppender>& packer, Random& random, int levels) {
    const std::uint64_t number = random() >> random() % 64;
    const auto size = static_cast<std::uint32_t>(random() % 40);
    const auto count = static_cast<std::uint32_t>(random() % 20);
    switch (random() % (levels > 0 ? 12 : 10)) {
    case 0:
        packer.pack_nil();
        break;
    case 1:
        packer.pack(number % 2 == 0);
        break;
    case 2:
        packer.pack(number);
        break;
    case 3:
        packer.pack(-static_cast<std::int64_t>(number / 2));
        break;
    case 4: // more bytes than it needs
        packer.pack_fix_int64(static_cast<std::int64_t>(number));
        break;
    case 5:
        packer.pack_float(std::bit_cast<float>(static_cast<std::uint32_t>(number)));
        break;
    case 6:
        packer.pack_double(std::bit_cast<double>(random()));
        break;
    case 7:
        packer.pack_str(size).pack_str_body(random_bytes(random, size).data(), size);
        break;
    case 8:
        packer.pack_bin(size).pack_bin_body(random_bytes(random, size).data(), size);
        break;
    case 9:
        packer.pack_ext(size, static_cast<std::int8_t>(number));
        packer.pack_ext_body(random_bytes(random, size).data(), size);
        break;
    case 10:
        packer.pack_array(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            pack_random(packer, random, levels - 1);
        }
        break;
    default:
        packer.pack_map(count);
        for (std::uint32_t i = 0; i < 2 * count; ++i) {
            pack_random(packer, random, levels - 1);
        }
    }
}

/// A byte changed, left out or put in, or the end cut off.
std::string damaged(std::string bytes, Random& random) {
    const std::size_t place = random() % bytes.size();
    switch (random() % 4) {
    case 0:
        bytes[place] = static_cast<char>(random());
        break;
    case 1:
        bytes.erase(place, 1);
        break;
    case 2:
        bytes.insert(place, 1, static_cast<char>(random()));
        break;
    default:
        bytes.resize(place);
    }
    return bytes;
}

TEST_CASE("any first byte is read as msgpack reads it, whatever follows and wherever it is cut") {
    // Sizes of 1, 2 or 4 bytes: 0, 1, 2 and more than there is.
    const std::string tails[] = {"\0"s,       "\1"s,       "\2"s,   "\0\1"s,    "\0\2"s,
                                 "\0\0\0\1"s, "\0\0\0\2"s, "\xff"s, "\x80\x7f"s};
    for (int first = 0; first < 256; ++first) {
        bool accepted = false;
        for (const std::string& tail : tails) {
            std::string bytes;
            while (bytes.size() < 64) {
                accepted |= accepted_alike(bytes);
                bytes += bytes.empty() ? static_cast<char>(first)
                                       : tail[(bytes.size() - 1) % tail.size()];
            }
        }
        CAPTURE(first);
        CHECK(accepted == (first != 0xc1));
    }
}

TEST_CASE("any tree is read as msgpack reads it, and damaged ones are too") {
    Random random(1);
    int accepted = 0;
    int refused = 0;
    for (int i = 0; i < 2000; ++i) {
        std::string bytes;
        MsgpackAppender appender{bytes};
        msgpack::packer<MsgpackAppender> packer(appender);
        pack_random(packer, random, 4);
        REQUIRE(accepted_alike(bytes));
        for (int k = 0; k < 20; ++k) {
            std::string changed = damaged(bytes, random);
            ++(accepted_alike(changed) ? accepted : refused);
        }
    }
    CHECK(accepted > 1000);
    CHECK(refused > 1000);
}

/// Requires that a flat array is read as msgpack reads it. Whether it was accepted.
template <class Numbers>
bool numbers_alike(const std::string& text) {
    CAPTURE(hex(text));
    const std::vector<char> exact(text.begin(), text.end());
    const std::string_view bytes(exact.data(), exact.size());
    orizuru::Scratch scratch;
    std::optional<Numbers> ours;
    std::optional<Numbers> theirs;
    try {
        ours = orizuru::Codec<Numbers>::decode(bytes, scratch);
    } catch (const std::invalid_argument&) {
        ours.reset();
    }
    try {
        msgpack::zone zone;
        theirs = unpacked(bytes, zone).as<Numbers>();
    } catch (const msgpack::unpack_error&) {
        theirs.reset();
    } catch (const msgpack::type_error&) {
        theirs.reset();
    }
    REQUIRE(ours.has_value() == theirs.has_value());
    // Compared as bytes: a number that is none does not equal itself.
    const auto written = [](const Numbers& numbers) {
        std::string out;
        orizuru::Codec<Numbers>::encode(numbers, out);
        return out;
    };
    REQUIRE((!ours || written(*ours) == written(*theirs)));
    return ours.has_value();
}

enum class Colour { red };

TEST_CASE("a flat array of any numbers is read as msgpack reads it") {
    Random random(1);
    int accepted = 0;
    int refused = 0;
    for (int i = 0; i < 3000; ++i) {
        std::string bytes;
        MsgpackAppender appender{bytes};
        msgpack::packer<MsgpackAppender> packer(appender);
        const auto count = static_cast<std::uint32_t>(random() % 40);
        packer.pack_array(count);
        for (std::uint32_t k = 0; k < count; ++k) {
            const std::uint64_t number = random() >> random() % 64;
            switch (i % 4) {
            case 0:
                packer.pack(number % 128);
                break;
            case 1:
                packer.pack(static_cast<std::int64_t>(number));
                break;
            case 2:
                packer.pack(std::bit_cast<double>(number));
                break;
            default:
                packer.pack(number % 2 == 0);
            }
        }
        for (const std::string& text : {bytes, damaged(bytes, random), damaged(bytes, random)}) {
            for (const bool alike :
                 {numbers_alike<std::vector<std::int8_t>>(text),
                  numbers_alike<std::vector<std::uint64_t>>(text),
                  numbers_alike<std::deque<std::int32_t>>(text),
                  numbers_alike<std::vector<float>>(text), numbers_alike<std::vector<double>>(text),
                  numbers_alike<std::vector<bool>>(text), numbers_alike<std::vector<Colour>>(text),
                  numbers_alike<std::vector<std::chrono::seconds>>(text),
                  numbers_alike<std::vector<unsigned char>>(text)}) {
                ++(alike ? accepted : refused);
            }
        }
    }
    CHECK(accepted > 1000);
    CHECK(refused > 1000);
}

TEST_CASE("enums that an adaptor reads from arrays are read from a tree") {
    orizuru::Scratch scratch;
    CHECK(orizuru::Codec<std::vector<Boxed>>::decode("\x92\x91\7\x91\x8", scratch) ==
          std::vector{Boxed(7), Boxed(8)});
}

TEST_CASE("a payload is looked at unless it is too short to nest too deep, whatever its bytes") {
    Random random(1);
    for (int i = 0; i < 20'000; ++i) {
        // 64 heads and 65, at any place, among bytes that are none.
        std::string bytes(65 + random() % 960, static_cast<char>("\0\x7f\xa0\xbf\xdb\xe0"[i % 6]));
        const std::size_t heads = std::min<std::size_t>(bytes.size(), 64 + i % 2);
        for (std::size_t k = 0; k < heads; ++k) {
            bytes[k] = "\x80\x8f\x90\x9f\xdc\xdd\xde\xdf"[random() % 8];
        }
        std::shuffle(bytes.begin(), bytes.end(), random);
        REQUIRE(orizuru::detail::may_exceed_msgpack_bounds(bytes) == (heads == 65));
    }
    CHECK_FALSE(orizuru::detail::may_exceed_msgpack_bounds(std::string(64, '\x91')));
    CHECK(orizuru::detail::may_exceed_msgpack_bounds(std::string(1025, '\0')));
}

TEST_CASE("a refusal says what is wrong") {
    const std::pair<std::string, const char*> refusals[] = {
        {"", "an empty payload"},
        {"\xc1", "the byte 0xc1, which begins no value"},
        {"\xcd\1", "fewer bytes than announced"},
        {"\xa2x", "fewer bytes than announced"},
        {"\x92\xa1\1", "fewer bytes than announced"},
        {"\7\7", "bytes behind the value"},
        {std::string(65, '\x91') + '\7', "more than 64 levels"},
        {"\xdd\0\x40\0\0"s + std::string(std::size_t{4} << 20, '\7'), "more than 4194304 values"},
    };
    for (const auto& [bytes, reason] : refusals) {
        msgpack::zone zone;
        MsgpackReader reader(bytes, zone);
        CHECK_THROWS_WITH_AS(static_cast<void>(reader.read()), reason, std::invalid_argument);
    }
}

} // namespace msgpack_reader_test
