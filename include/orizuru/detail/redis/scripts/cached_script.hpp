// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A script's text and its name in Redis' script cache.

#include <orizuru/detail/redis/scripts/sha1.hpp>

#include <atomic>
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
        if (m_state.load(std::memory_order_acquire) == State::known) {
            return m_sha1;
        }
        const Sha1Hex sha1 = sha1_hex(m_source);
        State unknown = State::unknown;
        if (m_state.compare_exchange_strong(unknown, State::writing)) {
            m_sha1 = sha1;
            m_state.store(State::known, std::memory_order_release);
        }
        return sha1;
    }

  private:
    enum class State : std::uint8_t { unknown, writing, known };

    std::string_view m_source;
    mutable Sha1Hex m_sha1{}; ///< once it is known
    mutable std::atomic<State> m_state{State::unknown};
};

} // namespace orizuru::detail
