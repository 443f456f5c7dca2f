// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a lane has told its user of, so that it tells of each trouble and of its end once. Breaks of
// its link and of its waiter's connection that overlap are one trouble.

#include <orizuru/detail/base/clock.hpp>

#include <chrono>
#include <cstdint>
#include <utility>

namespace orizuru::detail {

class ToldTroubles {
  public:
    /// A connection breaks. Returns false when a break was told of already.
    [[nodiscard]] bool begin_break() noexcept {
        return std::exchange(m_break, Break::told) == Break::none;
    }
    /// All is connected. Returns false when no break was told of.
    [[nodiscard]] bool end_break() noexcept {
        return std::exchange(m_break, Break::none) == Break::told;
    }

    /// A Cluster has refused because the queue's slot is on its way. Returns true once, when it has
    /// refused for 5 s. Attempts are no further apart than that; refusals that are belong to two
    /// moves.
    [[nodiscard]] bool migrates_long(TimePoint now) noexcept {
        constexpr std::chrono::seconds long_enough(5);
        const bool another = now - std::exchange(m_refused_at, now) > long_enough;
        if (m_migrating_since == TimePoint() || another) {
            m_migrating_since = now;
        }
        if (m_migrating_since == told || now - m_migrating_since < long_enough) {
            return false;
        }
        m_migrating_since = told;
        return true;
    }
    /// It has not been on its way all the time.
    void forget_migration() noexcept { m_migrating_since = {}; }

  private:
    enum class Break : std::uint8_t { none, told };
    static constexpr TimePoint told = TimePoint::max();

    Break m_break = Break::none;
    TimePoint m_migrating_since{};
    TimePoint m_refused_at{};
};

} // namespace orizuru::detail
