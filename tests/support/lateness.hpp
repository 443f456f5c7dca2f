// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// How late a busy machine lets a thread run: what is over in time on an idle one may then not be.

#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stop_token>
#include <thread>

namespace orizuru::test {

/// Watches while it exists: a thread sleeps again and again, for 5 ms each.
class Lateness {
  public:
    using Clock = std::chrono::steady_clock;

    Lateness() : m_thread([this](const std::stop_token& token) { watch(token); }) {}

    /// The time by which sleeps were longer than asked for, with that of one that should be over by
    /// now.
    [[nodiscard]] std::chrono::milliseconds total() const {
        const std::lock_guard lock(m_mutex);
        const auto begun = std::max(Clock::duration(0), Clock::now() - m_due);
        return std::chrono::duration_cast<std::chrono::milliseconds>(m_total + begun);
    }

  private:
    static constexpr std::chrono::milliseconds sleep{5};

    void watch(const std::stop_token& token) {
        Clock::time_point due = m_due;
        while (!token.stop_requested()) {
            std::this_thread::sleep_until(due);
            const std::lock_guard lock(m_mutex);
            m_total += Clock::now() - m_due;
            m_due = due = Clock::now() + sleep;
        }
    }

    mutable std::mutex m_mutex; ///< guards what follows
    Clock::time_point m_due = Clock::now() + sleep;
    Clock::duration m_total{0};
    std::jthread m_thread;
};

} // namespace orizuru::test
