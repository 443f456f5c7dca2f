// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Knows who works for a lane, and therefore whom a change has to wake. Threads in Lane::drive do
// all that is due and see each change. What no thread waits for, the heartbeat does: it attends to
// the lane from a request until all is done. A thread that polls several lanes waits elsewhere.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/base/wake.hpp>

#include <cstdint>
#include <mutex>
#include <utility>

namespace orizuru::detail {

/// Callers hold the link's lock.
class Attendance {
  public:
    class Watch;

    /// A thread drives the lane while the result exists.
    [[nodiscard]] auto driving() noexcept {
        ++m_drivers;
        return at_exit([this] { --m_drivers; });
    }
    /// While the result exists, acks are sent at each chance instead of with the next fetch.
    [[nodiscard]] auto hurrying() noexcept {
        ++m_hurries;
        return at_exit([this] { --m_hurries; });
    }
    [[nodiscard]] bool hurries() const noexcept { return m_hurries > 0 || attends(); }

    /// Work is due that no thread waits for, the next time that the heartbeat looks.
    void request() noexcept {
        m_attention = attends() ? Attention::requested_again : Attention::requested;
    }
    /// Does the same, and wakes the heartbeat for it.
    void ask() noexcept {
        request();
        wake_watchers();
    }
    /// The user has to hear of something. The thread that has read it may be another lane's.
    void ask_for_news() noexcept {
        if (m_drivers == 0 && !attends()) {
            ask();
        }
    }
    /// A thread that polls goes on when the link is free, and has the heartbeat connect it and take
    /// the reply to a fetch.
    void await_link() noexcept {
        m_poller = Poller::awaits_link;
        ask();
    }
    void link_is_free() noexcept {
        if (std::exchange(m_poller, Poller::busy) == Poller::awaits_link) {
            wake_watchers();
        }
    }
    [[nodiscard]] bool link_is_awaited() const noexcept { return m_poller == Poller::awaits_link; }
    /// Wakes all that watch, the heartbeat among them.
    inline void wake_watchers() noexcept;

    // For the heartbeat.

    /// It has been asked to attend to the lane, and has not come to an end.
    [[nodiscard]] bool wanted() const noexcept { return m_attention != Attention::none; }
    /// Begins, or goes on. Returns true when it was asked since it began.
    bool begin() noexcept {
        return std::exchange(m_attention, Attention::given) != Attention::given;
    }
    /// Everything is done that it was asked for before it last began.
    void end() noexcept {
        if (attends()) {
            m_attention = m_attention == Attention::given ? Attention::none : Attention::requested;
        }
    }

  private:
    enum class Attention : std::uint8_t { none, requested, given, requested_again };
    enum class Poller : std::uint8_t { busy, awaits_link };

    [[nodiscard]] bool attends() const noexcept {
        return m_attention == Attention::given || m_attention == Attention::requested_again;
    }

    LinkedList<Watch> m_watches;
    int m_drivers = 0;
    int m_hurries = 0;
    Attention m_attention = Attention::none;
    Poller m_poller = Poller::busy;
};

/// While one exists, `wake` is signalled by the begin and the end of a recovery, by a refusal, and
/// by an event for the user that a thread of another queue has read.
class [[nodiscard]] Attendance::Watch : public Linked {
  public:
    /// Takes the lock, as the destructor does.
    Watch(std::mutex& mutex, Attendance& attendance, const Wake& wake)
        : m_mutex(mutex), m_attendance(attendance), m_wake(&wake) {
        const std::lock_guard lock(m_mutex);
        m_attendance.m_watches.push_back(*this);
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() {
        const std::lock_guard lock(m_mutex);
        m_attendance.m_watches.erase(*this);
    }
    void signal() const noexcept { m_wake->signal(); }
    /// Signals another one from now on. Callers hold the lock.
    void redirect(const Wake& wake) noexcept { m_wake = &wake; }

  private:
    std::mutex& m_mutex;
    Attendance& m_attendance;
    const Wake* m_wake;
};

inline void Attendance::wake_watchers() noexcept {
    for (const Watch& watch : m_watches) {
        watch.signal();
    }
}

} // namespace orizuru::detail
