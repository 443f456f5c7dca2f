// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Waiting in tests without fixed sleeps: a condition is polled until it holds or a deadline, far
// beyond what a healthy run needs, has passed.

#pragma once

#include <chrono>
#include <concepts>
#include <thread>

namespace orizuru::test {

/// Polls a condition every 2 ms. Returns whether it held before the deadline.
template <std::predicate Condition>
[[nodiscard]] bool eventually(Condition condition,
                              std::chrono::milliseconds deadline = std::chrono::seconds{10}) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= end) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    return true;
}

} // namespace orizuru::test
