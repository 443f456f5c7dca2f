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

/// Watches while it exists.
class Lateness {
  public:
    Lateness() : m_thread([this](const std::stop_token& token) { watch(token); }) {}

    /// The longest time so far by which a sleep was longer than asked for.
    [[nodiscard]] std::chrono::milliseconds longest() const { return m_longest; }

  private:
    using Clock = std::chrono::steady_clock;

    void watch(const std::stop_token& token) {
        constexpr std::chrono::milliseconds sleep{5};
        while (!token.stop_requested()) {
            const auto due = Clock::now() + sleep;
            std::this_thread::sleep_until(due);
            m_longest =
                std::max(m_longest.load(),
                         std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - due));
        }
    }

    std::atomic<std::chrono::milliseconds> m_longest{std::chrono::milliseconds(0)};
    std::jthread m_thread;
};

} // namespace orizuru::test
