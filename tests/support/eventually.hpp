// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Waiting in tests without fixed sleeps: a condition is polled until it holds, or until a deadline.

#pragma once

#include <chrono>
#include <concepts>
#include <thread>

namespace orizuru::test {

/// Waits for what must come, however busy the machine is: only a test that fails waits so long. A
/// test that is about the time that something takes measures it; see support/elapsed.hpp.
inline constexpr std::chrono::seconds patience{60};

/// Polls a condition every 2 ms, after a quarter of a second every 10 ms: what it asks takes a
/// server's time from the tests beside it. Returns whether it held before the deadline.
template <std::predicate Condition>
[[nodiscard]] bool eventually(Condition condition, std::chrono::milliseconds deadline = patience) {
    const auto begin = std::chrono::steady_clock::now();
    while (!condition()) {
        const auto waited = std::chrono::steady_clock::now() - begin;
        if (waited >= deadline) {
            return false;
        }
        std::this_thread::sleep_for(
            std::chrono::milliseconds{waited < std::chrono::milliseconds{250} ? 2 : 10});
    }
    return true;
}

} // namespace orizuru::test
