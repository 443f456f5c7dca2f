// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A script's text and its name in Redis' script cache.

#include <orizuru/detail/redis/sha1.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orizuru::detail {

/// One script. `source` must outlive it. Safe to use from any thread.
///
/// The library's own are constant-initialized: if a function made one at its first call, a child
/// that is forked during that call would wait for it for ever. Nor are their names computed by the
/// compiler, which takes a sixth of a second for each.
class CachedScript {
  public:
    explicit constexpr CachedScript(std::string_view source) noexcept : m_source(source) {}

    [[nodiscard]] constexpr std::string_view source() const noexcept { return m_source; }

    /// The first call computes it. So do calls at the same time, each for itself: nobody waits.
    [[nodiscard]] Sha1Hex sha1() const noexcept {
        Words words;
        if (m_known.load(std::memory_order_acquire)) {
            for (std::size_t i = 0; i < words.size(); ++i) {
                words[i] = m_sha1[i].load(std::memory_order_relaxed);
            }
            return std::bit_cast<Sha1Hex>(words);
        }
        const Sha1Hex sha1 = sha1_hex(m_source);
        words = std::bit_cast<Words>(sha1);
        for (std::size_t i = 0; i < words.size(); ++i) {
            m_sha1[i].store(words[i], std::memory_order_relaxed); // all threads write the same
        }
        m_known.store(true, std::memory_order_release);
        return sha1;
    }

  private:
    using Words = std::array<std::uint64_t, sizeof(Sha1Hex) / sizeof(std::uint64_t)>;

    std::string_view m_source;
    mutable std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> m_sha1{};
    mutable std::atomic<bool> m_known{false};
};

} // namespace orizuru::detail
