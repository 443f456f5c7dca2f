// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A sleep that a stop ends. It needs neither memory nor a descriptor: a shortage can be waited out.

#include <orizuru/detail/base/clock.hpp>

#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace orizuru::detail {

/// Sleeps until the deadline or until a stop is requested.
inline void sleep_until(TimePoint deadline, const std::stop_token& token) noexcept {
    std::mutex mutex;
    std::condition_variable stopped;
    const std::stop_callback wake_up(token, [&] {
        // The lock keeps this out of the gap between the look at the token and the wait.
        const std::lock_guard lock(mutex);
        stopped.notify_all();
    });
    std::unique_lock lock(mutex);
    stopped.wait_until(lock, deadline, [&] { return token.stop_requested(); });
}

} // namespace orizuru::detail
