// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Threads that wait for one connection take turns. The leader polls it for all; the followers sleep
// until something changes. A leader that resigns wakes the others, one of which leads next. Callers
// hold the one lock that the threads share.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/base/wake.hpp>

#include <condition_variable>
#include <mutex>

namespace orizuru::detail {

class LeaderFollowers {
  public:
    [[nodiscard]] bool has_leader() const noexcept { return m_leader != nullptr; }

    /// Runs `action(wake)` as the leader; there must be none yet. The action may release the lock.
    /// Signalling `wake` ends the leader's waiting; null stands for the leaders' own Wake.
    template <class Action>
    void lead(const Wake* wake, Action action) {
        if (wake == nullptr) {
            m_own.clear();
            wake = &m_own;
        }
        m_leader = wake;
        const auto resign = at_exit([this] {
            m_leader = nullptr;
            wake_all();
        });
        action(*wake);
    }

    /// Sleeps until something changes, `wake` (if any) is signalled, or the deadline.
    void follow(std::unique_lock<std::mutex>& lock, TimePoint deadline, const Wake* wake) {
        if (wake == nullptr) {
            wait_until(m_changed, lock, deadline);
            return;
        }
        Follower follower(*wake);
        m_followers.push_back(follower);
        const auto leave = at_exit([&] { m_followers.erase(follower); });
        const Unlocked open(lock);
        wait_ready(-1, 0, wake, deadline);
    }

    void wake_leader() const noexcept {
        if (m_leader != nullptr) {
            m_leader->signal();
        }
    }
    void wake_all() noexcept {
        m_changed.notify_all();
        for (const Follower& follower : m_followers) {
            follower.wake.signal();
        }
        wake_leader();
    }

  private:
    struct Follower : Linked {
        explicit Follower(const Wake& its_wake) noexcept : wake(its_wake) {}

        const Wake& wake; ///< it sleeps on it
    };

    std::condition_variable m_changed;
    LinkedList<Follower> m_followers;
    Wake m_own;
    const Wake* m_leader = nullptr;
};

} // namespace orizuru::detail
