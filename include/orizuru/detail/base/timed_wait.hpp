// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Waits on a condition, or for a stop, until a deadline. Where the C library cannot wait by
// steady_clock (musl, glibc before 2.30), the standard library turns a deadline into a time of the
// system's clock: TimePoint::max() overflows, and such a wait would end at once, again and again.
// So none waits longer than an hour in one piece.

#include <orizuru/detail/base/clock.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace orizuru::detail {

/// Ends with a notification or at the deadline, and now and then without either.
inline void wait_until(std::condition_variable& condition, std::unique_lock<std::mutex>& lock,
                       TimePoint deadline) {
    condition.wait_until(lock, std::min(deadline, Clock::now() + std::chrono::hours(1)));
}

/// Waits until `ready()`, and returns whether that came before the deadline.
template <class Ready>
bool wait_until(std::condition_variable& condition, std::unique_lock<std::mutex>& lock,
                TimePoint deadline, Ready ready) {
    while (!ready()) {
        if (Clock::now() >= deadline) {
            return false;
        }
        wait_until(condition, lock, deadline);
    }
    return true;
}

/// Waits until `ready()`, and returns whether that came before the deadline and a stop.
template <class Ready>
bool wait_until(std::condition_variable_any& condition, std::unique_lock<std::mutex>& lock,
                const std::stop_token& token, TimePoint deadline, Ready ready) {
    TimePoint piece;
    do {
        piece = std::min(deadline, Clock::now() + std::chrono::hours(1));
        if (condition.wait_until(lock, token, piece, ready)) {
            return true;
        }
    } while (!token.stop_requested() && piece < deadline);
    return false;
}

/// Sleeps until the deadline or until a stop is requested. It needs neither memory nor a
/// descriptor: a shortage can be waited out.
inline void sleep_until(TimePoint deadline, const std::stop_token& token) noexcept {
    std::mutex mutex;
    std::condition_variable stopped;
    const std::stop_callback wake_up(token, [&] {
        // The lock keeps this out of the gap between the look at the token and the wait.
        const std::lock_guard lock(mutex);
        stopped.notify_all();
    });
    std::unique_lock lock(mutex);
    wait_until(stopped, lock, deadline, [&] { return token.stop_requested(); });
}

} // namespace orizuru::detail
