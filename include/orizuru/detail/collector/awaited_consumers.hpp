// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Consumers without a heartbeat whose absence does not count yet (write_series.hpp). Each question
// whether it does is a write itself, and so keeps the series going.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/timeout.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

class AwaitedConsumers {
  public:
    using Milliseconds = std::chrono::milliseconds;

    /// Its absence counts in `wait` at the earliest; the series ends after `gap` without a write.
    void add(std::string id, Milliseconds wait, Milliseconds gap) {
        m_all.push_back({std::move(id), deadline_in(wait)});
        m_next = std::min(m_next, deadline_in(std::max(Milliseconds(1), std::min(wait, gap / 2))));
    }
    /// Removes and returns those to ask about now: whose waits are over, or else one of them, to
    /// keep the series going.
    [[nodiscard]] std::vector<std::string> take_due() {
        const TimePoint now = Clock::now();
        const auto others = std::partition(m_all.begin(), m_all.end(),
                                           [now](const Awaited& one) { return one.over <= now; });
        const auto end = others == m_all.begin() && !m_all.empty() ? others + 1 : others;
        std::vector<std::string> due;
        std::transform(m_all.begin(), end, std::back_inserter(due),
                       [](Awaited& one) { return std::move(one.id); });
        m_all.erase(m_all.begin(), end);
        m_next = TimePoint::max();
        for (const Awaited& one : m_all) {
            m_next = std::min(m_next, one.over);
        }
        return due;
    }
    void clear() noexcept {
        m_all.clear();
        m_next = TimePoint::max();
    }

    /// Returns when to ask again; the end of time if there are none.
    [[nodiscard]] TimePoint next() const noexcept { return m_next; }

  private:
    struct Awaited {
        std::string id;
        TimePoint over; ///< end of its wait
    };

    std::vector<Awaited> m_all;
    TimePoint m_next = TimePoint::max();
};

} // namespace orizuru::detail
