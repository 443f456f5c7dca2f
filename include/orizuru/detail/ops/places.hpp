// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where the messages of a place are, and how many of them are looked at together.

#include <orizuru/keys.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace orizuru::detail {

[[noreturn]] inline void refuse_held() {
    throw std::invalid_argument("a message that a consumer holds is the consumer's");
}

/// The key of all its messages. Throws for held ones, which are in many lists.
[[nodiscard]] inline std::string key_of(const Keys& keys, Place place) {
    switch (place) {
    case Place::waiting:
        return keys.source();
    case Place::scheduled:
        return keys.scheduled();
    case Place::rejected:
        return keys.unack();
    case Place::suspected:
        return keys.suspects();
    case Place::dead:
        return keys.dead();
    case Place::held:
        break;
    }
    refuse_held();
}

/// Refuses negative numbers; bounds the sum.
inline void check_range(std::int64_t first, std::int64_t& count) {
    if (first < 0 || count < 0) {
        throw std::invalid_argument("a place has no negative positions");
    }
    count = std::min(count, std::numeric_limits<std::int64_t>::max() - first);
}

/// So many messages together have about a mebibyte, unless one has more: a reply and a step are
/// never much larger, and never hold Redis up for long.
class ChunkSize {
  public:
    /// `first`: so many while nothing is known of their size.
    explicit ChunkSize(std::uint64_t most, std::uint64_t first = 10)
        : m_most(most), m_next(first) {}

    [[nodiscard]] std::uint64_t next() const noexcept { return m_next; }
    /// The last chunk had so many messages, with so many bytes in all.
    void learn(std::uint64_t count, std::uint64_t bytes) noexcept {
        constexpr std::uint64_t wanted = 1 << 20;
        const std::uint64_t each = bytes / std::max<std::uint64_t>(count, 1) + 1;
        m_next = std::clamp<std::uint64_t>(wanted / each, 1, m_most);
    }

  private:
    std::uint64_t m_most;
    std::uint64_t m_next;
};

} // namespace orizuru::detail
