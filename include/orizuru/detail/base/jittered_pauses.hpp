// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Pauses between attempts: exponential from 50 ms to 5 s with full jitter (drawn evenly between
// zero and the bound), so that clients do not all arrive at once when Redis comes back.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/random.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace orizuru::detail {

class JitteredPauses {
    static constexpr std::chrono::milliseconds shortest{50};
    static constexpr std::chrono::milliseconds longest{5000};

  public:
    /// At least 1 ms, and else at most `most`.
    [[nodiscard]] std::chrono::milliseconds
    next(std::chrono::milliseconds most = longest) noexcept {
        const auto bound = std::min(most, std::exchange(m_bound, std::min(longest, 2 * m_bound)));
        return std::chrono::milliseconds(
            1 + m_random.up_to(std::max<std::int64_t>(bound.count(), 1) - 1));
    }

    void reset() noexcept { m_bound = shortest; }

  private:
    std::chrono::milliseconds m_bound = shortest; ///< the next pause's
    Random m_random;
};

/// Holds back the next attempt after a refusal. The pauses grow until an attempt succeeds.
class Backoff {
  public:
    /// Begins a pause of at most `longest`. Does nothing while one lasts: errors to requests that
    /// were sent together are one failure.
    void begin(std::chrono::milliseconds longest) noexcept {
        if (over()) {
            m_until = Clock::now() + m_pauses.next(longest);
        }
    }
    /// The next pause is a short one again.
    void succeeded() noexcept { m_pauses.reset(); }
    [[nodiscard]] bool over() const noexcept {
        return m_until == TimePoint() || Clock::now() >= m_until;
    }
    /// Returns the end of the pause that lasts at `now` if it comes before `deadline`, else
    /// `deadline`.
    [[nodiscard]] TimePoint bound(TimePoint deadline, TimePoint now) const noexcept {
        return now >= m_until ? deadline : std::min(deadline, m_until);
    }

  private:
    JitteredPauses m_pauses;
    TimePoint m_until{};
};

/// Spaces out attempts to connect. The pauses grow until something succeeds. The first attempt has
/// none: another server may have taken over already.
class ConnectPauses {
  public:
    /// Pauses connecting until `next`.
    [[gnu::cold]] void begin() noexcept {
        constexpr std::chrono::seconds calm(10);
        const TimePoint now = Clock::now();
        if (now - m_next > calm) {
            succeeded();
        }
        m_next = std::exchange(m_at_once, false) ? now : now + m_pauses.next();
    }
    void succeeded() noexcept {
        m_pauses.reset();
        m_at_once = true;
    }
    [[nodiscard]] TimePoint next() const noexcept { return m_next; }

  private:
    JitteredPauses m_pauses;
    bool m_at_once = true; ///< the next attempt has no pause
    TimePoint m_next{};
};

} // namespace orizuru::detail
