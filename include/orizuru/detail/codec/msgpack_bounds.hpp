// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Bounds how deep a payload may nest and how many values it may have. Reading has these bounds,
// since a tree of objects takes many times the bytes that describe it, and so has writing, since
// nobody could read the rest.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace orizuru::detail {

inline constexpr std::size_t most_msgpack_levels = 64;

/// The number of values that a payload of this size may have. It depends on nothing that two peers
/// could set differently: what one of them writes, the other reads. 4 Mi is a quarter of the
/// default max_payload: a value takes 24 bytes of tree and its element in T.
[[nodiscard]] constexpr std::uint64_t most_msgpack_values(std::size_t payload) noexcept {
    return std::max(std::uint64_t{4} << 20, std::uint64_t{payload / 4});
}

/// A longer payload is read faster, value by value, than it is counted.
inline constexpr std::size_t most_counted_msgpack_bytes = 1024;

/// False if the payload is so short, or so few of its bytes could begin an array or a map, that it
/// cannot have too many levels or values. Takes a few nanoseconds.
[[nodiscard]] inline bool may_exceed_msgpack_bounds(std::string_view payload) noexcept {
    if (payload.size() <= most_msgpack_levels) {
        return false;
    }
    if (payload.size() > most_counted_msgpack_bytes) {
        return true;
    }
    using Block [[gnu::vector_size(16)]] = signed char;
    Block heads{};
    const auto count = [&heads](const Block& block) {
        // 0x80 to 0x9f, and 0xdc to 0xdf; a lane is -1 where that is so
        heads -= (block < -0x60) | ((block & -0x04) == -0x24);
    };
    Block block{};
    for (; payload.size() >= sizeof block; payload.remove_prefix(sizeof block)) {
        std::memcpy(&block, payload.data(), sizeof block);
        count(block);
    }
    block = Block{};
    std::memcpy(&block, payload.data(), payload.size());
    count(block);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < sizeof(Block); ++i) {
        sum += static_cast<std::size_t>(heads[i]);
    }
    return sum > most_msgpack_levels;
}

} // namespace orizuru::detail
