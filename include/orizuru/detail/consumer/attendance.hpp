// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Knows who works for a lane, and therefore whom a change has to wake. Threads in Lane::drive do
// all that is due and see each change. What no thread waits for, the heartbeat does: it attends to
// the lane from a request until all is done. A thread that polls several lanes waits elsewhere.

#include <orizuru/detail/base/at_exit.hpp>

#include <cstdint>
#include <utility>

namespace orizuru::detail {

/// Callers hold the link's lock.
class Attendance {
  public:
    /// Whom the caller has to wake: nobody, or all that watch the lane. The heartbeat does.
    enum class Wakes : std::uint8_t { nobody, watchers };

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
    /// Does the same, at once.
    [[nodiscard]] Wakes ask() noexcept {
        request();
        return Wakes::watchers;
    }
    /// The user has to hear of something. The thread that has read it may be another lane's.
    [[nodiscard]] Wakes tell() noexcept {
        return m_drivers == 0 && !attends() ? ask() : Wakes::nobody;
    }
    /// A thread that polls goes on when the link is free, and has the heartbeat see to that.
    [[nodiscard]] Wakes await_link() noexcept {
        m_poller = Poller::awaits_link;
        return ask();
    }
    [[nodiscard]] Wakes link_is_free() noexcept {
        return std::exchange(m_poller, Poller::busy) == Poller::awaits_link ? Wakes::watchers
                                                                            : Wakes::nobody;
    }
    [[nodiscard]] bool link_is_awaited() const noexcept { return m_poller == Poller::awaits_link; }

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

    int m_drivers = 0;
    int m_hurries = 0;
    Attention m_attention = Attention::none;
    Poller m_poller = Poller::busy;
};

} // namespace orizuru::detail
