// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// SHA-1 (FIPS 180-4), the name under which Redis caches a script. The library computes it, since
// asking Redis (SCRIPT LOAD) costs a round trip on every connection and needs another right.

#include <orizuru/detail/base/joined.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orizuru::detail {

using Sha1Hex = FixedText<40>;
using Sha1State = std::array<std::uint32_t, 5>;

constexpr void add_block(Sha1State& state, const std::array<std::uint8_t, 64>& bytes) {
    std::array<std::uint32_t, 80> w{};
    for (std::size_t i = 0; i < 16; ++i) {
        w[i] = std::uint32_t{bytes[4 * i]} << 24 | std::uint32_t{bytes[4 * i + 1]} << 16 |
               std::uint32_t{bytes[4 * i + 2]} << 8 | std::uint32_t{bytes[4 * i + 3]};
    }
    for (std::size_t i = 16; i < 80; ++i) {
        w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    auto [a, b, c, d, e] = state;
    for (std::size_t i = 0; i < 80; ++i) {
        std::uint32_t f = b ^ c ^ d;
        std::uint32_t k = 0xca62c1d6;
        if (i < 20) {
            f = (b & c) | (~b & d);
            k = 0x5a827999;
        } else if (i < 40) {
            k = 0x6ed9eba1;
        } else if (i < 60) {
            f = (b & c) | (b & d) | (c & d);
            k = 0x8f1bbcdc;
        }
        const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = std::rotl(b, 30);
        b = a;
        a = next;
    }
    state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d, state[4] + e};
}

[[nodiscard]] constexpr Sha1Hex sha1_hex(std::string_view text) {
    Sha1State state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    std::array<std::uint8_t, 64> bytes{};
    std::size_t filled = 0;
    const auto put = [&](std::uint8_t byte) {
        bytes[filled++] = byte;
        if (filled == bytes.size()) {
            add_block(state, bytes);
            filled = 0;
        }
    };
    for (const char c : text) {
        put(static_cast<std::uint8_t>(c));
    }
    put(0x80);
    while (filled != 56) {
        put(0);
    }
    for (int shift = 56; shift >= 0; shift -= 8) {
        put(static_cast<std::uint8_t>(std::uint64_t{text.size()} * 8 >> shift));
    }
    Sha1Hex out{};
    for (std::size_t i = 0; i < out.characters.size(); ++i) {
        out.characters[i] = "0123456789abcdef"[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    }
    return out;
}

} // namespace orizuru::detail
