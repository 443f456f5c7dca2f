// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Ends a poll from another thread, from a signal handler or at a stop, and the poll itself with a
// monotonic deadline.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/standard_descriptors.hpp>
#include <orizuru/detail/base/system.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <system_error>

namespace orizuru::detail {

class Wake {
  public:
    /// Throws std::system_error without a free descriptor.
    Wake() {
        take_standard_descriptors();
        m_ends = system::open_wake();
    }
    Wake(const Wake&) = delete;
    Wake& operator=(const Wake&) = delete;
    ~Wake() {
        ::close(m_ends.writes);
        if (m_ends.reads != m_ends.writes) {
            ::close(m_ends.reads);
        }
    }

    /// Readable once it is signalled.
    [[nodiscard]] int fd() const noexcept { return m_ends.reads; }

    /// Stops sharing its descriptors with parent and child processes. Signals sent before or
    /// meanwhile may be lost. Throws std::system_error without a free descriptor.
    void renew() const {
        const Wake own;
        system::replace(m_ends, own.m_ends); // another thread may be in signal()
    }

    /// Safe in a signal handler: it keeps errno.
    void signal() const noexcept {
        const int saved = errno;
        system::wake(m_ends); // without room the poll is awake already
        m_signalled.store(true, std::memory_order_release);
        errno = saved;
    }

    /// Clears it. Everything before a cleared signal() is visible after this.
    void clear() const noexcept {
        // If signal() sets the flag too late, the poll sees its write and the next call clears it.
        if (!m_signalled.exchange(false, std::memory_order_acquire)) {
            return;
        }
        std::array<std::uint64_t, 32> words{};
        while (::read(m_ends.reads, words.data(), sizeof words) == sizeof words) {
        }
    }

    /// For a poll that finds it signalled, perhaps by a forked child, which sets a flag of its own.
    void found_signalled() const noexcept { m_signalled.store(true, std::memory_order_release); }

  private:
    system::Ends m_ends;
    mutable std::atomic<bool> m_signalled{false}; ///< spares clear() a system call
};

/// Waits for at most `time` until `fd` (or nothing, when -1) is ready for `events` or `wake` is
/// signalled; returns what `fd` is ready for, or nullopt at the end of the time or at a signal.
inline std::optional<short> poll_ready(int fd, short events, const Wake* wake,
                                       std::chrono::milliseconds time) {
    std::array<pollfd, 2> fds{pollfd{fd, events, 0},
                              pollfd{wake == nullptr ? -1 : wake->fd(), POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(time.count()));
    if (ready < 0 && errno != EINTR) {
        throw_errno("poll");
    }
    if (wake != nullptr && fds[1].revents != 0) {
        wake->found_signalled();
    }
    return ready > 0 ? std::optional(fds[0].revents) : std::nullopt;
}

/// Waits until `fd` (or nothing, when -1) is ready for `events`, `wake` is signalled or the
/// deadline has passed; returns what `fd` is ready for, 0 otherwise. Signals do not prolong it.
inline short wait_ready(int fd, short events, const Wake* wake, TimePoint deadline) {
    while (true) {
        // The difference to a deadline long past, such as TimePoint::min(), would overflow.
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            std::max(deadline, TimePoint()) - Clock::now());
        // poll takes an int; a longer wait simply polls again.
        const auto time = std::clamp(left, std::chrono::milliseconds(0),
                                     std::chrono::milliseconds(std::chrono::hours(1)));
        if (const auto ready = poll_ready(fd, events, wake, time)) {
            return *ready;
        }
        if (Clock::now() >= deadline) {
            return 0;
        }
    }
}

} // namespace orizuru::detail
