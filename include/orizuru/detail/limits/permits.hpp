// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The grants of a rate that a process has and has not used yet. Each is good for one job, from its
// time on for 50 ms.

#include <orizuru/detail/base/clock.hpp>

#include <algorithm>
#include <chrono>
#include <deque>

namespace orizuru::detail {

/// For one thread at a time.
class Permits {
  public:
    static constexpr std::chrono::milliseconds validity{50};

    /// One that was granted between `earliest` and `latest`: the clocks of Redis and the process
    /// tell no more. It never begins too early, and never ends too late.
    void add(TimePoint earliest, TimePoint latest) {
        m_permits.push_back({latest, earliest + validity});
    }
    /// Forgets those that are void.
    void drop_void(TimePoint now) noexcept {
        std::erase_if(m_permits, [=](const Permit& permit) { return permit.until < now; });
    }
    /// Returns for how many more jobs there are permits now.
    [[nodiscard]] int usable(TimePoint now) const noexcept {
        return static_cast<int>(std::ranges::count_if(m_permits, [=](const Permit& permit) {
            return !permit.promised && permit.holds(now);
        }));
    }
    /// Returns when the next one begins; TimePoint::max() without one.
    [[nodiscard]] TimePoint next(TimePoint now) const noexcept {
        TimePoint first = TimePoint::max();
        for (const Permit& permit : m_permits) {
            if (!permit.promised && permit.from > now) {
                first = std::min(first, permit.from);
            }
        }
        return first;
    }
    /// Sets one aside for a job that will begin.
    void promise(TimePoint now) noexcept {
        for (Permit& permit : m_permits) {
            if (!permit.promised && permit.holds(now)) {
                permit.promised = true;
                return;
            }
        }
    }
    /// Uses one up; false without one.
    [[nodiscard]] bool use(TimePoint now) noexcept {
        const auto permit =
            std::ranges::find_if(m_permits, [=](const Permit& one) { return one.holds(now); });
        if (permit == m_permits.end()) {
            return false;
        }
        m_permits.erase(permit);
        return true;
    }

  private:
    struct Permit {
        TimePoint from;
        TimePoint until;
        bool promised = false;

        [[nodiscard]] bool holds(TimePoint now) const noexcept {
            return from <= now && now <= until;
        }
    };

    std::deque<Permit> m_permits; ///< the oldest in front, so those that are promised, too
};

} // namespace orizuru::detail
