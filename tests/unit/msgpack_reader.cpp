// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Our reading of msgpack beside msgpack's own.

#include "support/hex.hpp"
#include "support/msgpack_itself.hpp"

#include <orizuru/detail/codec/msgpack_reader.hpp>
#include <orizuru/msgpack.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

TEST_CASE("a refusal says what is wrong") {
    const std::pair<std::string, const char*> refusals[] = {
        {"", "an empty payload"},
        {"\xc1", "the byte 0xc1, which begins no value"},
        {"\xcd\1", "fewer bytes than announced"},
        {"\xa2x", "fewer bytes than announced"},
        {"\x92\xa1\1", "fewer bytes than announced"},
        {"\7\7", "bytes behind the value"},
        {std::string(65, '\x91') + '\7', "more than 64 levels"},
        {"\xdd\0\x0f\x42\x40"s + std::string(1'000'000, '\7'), "more than 1,000,000 values"},
    };
    for (const auto& [bytes, reason] : refusals) {
        msgpack::zone zone;
        MsgpackReader reader(bytes, zone);
        CHECK_THROWS_WITH_AS(static_cast<void>(reader.read()), reason, std::invalid_argument);
    }
}

} // namespace msgpack_reader_test
