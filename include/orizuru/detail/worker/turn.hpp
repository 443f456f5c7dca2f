// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets threads take turns, each with a bounded wait.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/base/unlocked.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace orizuru::detail {

class Turn {
  public:
    /// Runs `action` while no other thread runs one; false when its turn does not come in time.
    template <class Action>
    [[nodiscard]] bool take(std::chrono::milliseconds patience, Action action) {
        std::unique_lock lock(m_mutex);
        if (!wait_until(m_free, lock, deadline_in(patience), [this] { return !m_taken; })) {
            return false;
        }
        m_taken = true;
        const auto leave = at_exit([this] {
            m_taken = false;
            m_free.notify_one();
        });
        const Unlocked open(lock);
        action();
        return true;
    }

  private:
    std::mutex m_mutex; ///< guards what follows
    bool m_taken = false;
    std::condition_variable m_free;
};

} // namespace orizuru::detail
