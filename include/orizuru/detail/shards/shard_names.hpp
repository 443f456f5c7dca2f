// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The names of a queue's shards, and the shard of a key. Both go by the hash slots of a Cluster, so
// that each of its masters gets its share of the shards.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

inline constexpr std::size_t cluster_slots = 16384;

/// The hash slot of a key without a hash tag: CRC-16/XMODEM modulo 16384.
/// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#appendix
[[nodiscard]] constexpr std::size_t cluster_slot(std::string_view key) noexcept {
    unsigned crc = 0;
    for (const char c : key) {
        crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
        for (int bit = 0; bit < 8; ++bit) {
            crc = ((crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
        }
    }
    return crc % cluster_slots;
}

/// Which of `count` shards has a slot: each has a range of them, and twice as many shards have half
/// the ranges.
[[nodiscard]] constexpr std::size_t shard_of_slot(std::size_t slot, std::size_t count) noexcept {
    return slot * count / cluster_slots;
}

/// The names of `count` shards, in the order of their slots. Each is Q#n with the least n whose
/// slot is in the shard's range; so the names of twice as many shards contain these.
[[nodiscard]] [[gnu::cold]] inline std::vector<std::string> shard_names(std::string_view queue,
                                                                        std::size_t count) {
    std::vector<std::string> names(count);
    std::size_t missing = count;
    for (std::size_t n = 0; missing > 0; ++n) {
        std::string name = joined({queue, "#", Digits(n)});
        std::string& place = names[shard_of_slot(cluster_slot(name), count)];
        if (place.empty()) {
            place = std::move(name);
            --missing;
        }
    }
    return names;
}

} // namespace orizuru::detail
