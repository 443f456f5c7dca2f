// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// How late a busy machine lets a thread run: what is over in time on an idle one may then not be.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

namespace orizuru::test {

/// Watches while it exists: a thread sleeps again and again, for 5 ms each.
class Lateness {
  public:
    using Clock = std::chrono::steady_clock;

    Lateness() : m_thread([this](const std::stop_token& token) { watch(token); }) {}

    /// The longest time so far by which a sleep was longer than asked for.
    [[nodiscard]] std::chrono::milliseconds longest() const {
        return std::chrono::duration_cast<std::chrono::milliseconds>(m_longest.load());
    }
    /// The sum of these times, with the one of a sleep that should be over by now.
    [[nodiscard]] std::chrono::milliseconds total() const {
        const auto begun = std::max(Clock::duration(0), Clock::now() - m_due.load());
        return std::chrono::duration_cast<std::chrono::milliseconds>(m_total.load() + begun);
    }

  private:
    static constexpr std::chrono::milliseconds sleep{5};

    void watch(const std::stop_token& token) {
        while (!token.stop_requested()) {
            std::this_thread::sleep_until(m_due.load());
            const auto late = Clock::now() - m_due.load();
            m_longest = std::max(m_longest.load(), late);
            m_due = Clock::now() + sleep;
            m_total = m_total.load() + late;
        }
    }

    std::atomic<Clock::time_point> m_due{Clock::now() + sleep};
    std::atomic<Clock::duration> m_longest{Clock::duration(0)};
    std::atomic<Clock::duration> m_total{Clock::duration(0)};
    std::jthread m_thread;
};

} // namespace orizuru::test
