// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Holds back the next attempt after a refusal. The holds grow until an attempt succeeds.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>

#include <algorithm>

namespace orizuru::detail {

class Hold {
  public:
    /// Does nothing while one lasts: errors to requests that were sent together are one failure.
    void begin() noexcept {
        if (over()) {
            m_until = Clock::now() + m_pauses.next();
        }
    }
    /// The next hold is a short one again.
    void succeeded() noexcept { m_pauses.reset(); }
    [[nodiscard]] bool over() const noexcept {
        return m_until == TimePoint() || Clock::now() >= m_until;
    }
    /// The end of the hold that lasts at `now` where that comes before `deadline`, else `deadline`.
    [[nodiscard]] TimePoint bound(TimePoint deadline, TimePoint now) const noexcept {
        return now >= m_until ? deadline : std::min(deadline, m_until);
    }

  private:
    JitteredPauses m_pauses;
    TimePoint m_until{};
};

} // namespace orizuru::detail
