// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/timed_wait.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

namespace timed_wait_test {

using namespace std::chrono_literals;
using orizuru::detail::Clock;
using orizuru::detail::TimePoint;
using orizuru::detail::wait_until;

struct Waiter {
    std::mutex mutex;
    bool ready = false;
    int looks = 0;

    bool look() {
        ++looks;
        return ready;
    }
};

// Where a wait without a deadline ends at once, a thread looks a hundred thousand times in this
// time.
constexpr auto a_while = 200ms;
constexpr int few = 100;

TEST_CASE("a wait without a deadline sleeps until it is notified") {
    Waiter waiter;
    std::condition_variable changed;
    std::jthread notifier([&] {
        std::this_thread::sleep_for(a_while);
        const std::lock_guard lock(waiter.mutex);
        waiter.ready = true;
        changed.notify_all();
    });
    std::unique_lock lock(waiter.mutex);
    CHECK(wait_until(changed, lock, TimePoint::max(), [&] { return waiter.look(); }));
    CHECK(waiter.looks < few);
}

TEST_CASE("so does one that a stop may end") {
    Waiter waiter;
    std::condition_variable_any changed;
    std::stop_source stop;
    std::jthread stopper([&] {
        std::this_thread::sleep_for(a_while);
        stop.request_stop();
    });
    std::unique_lock lock(waiter.mutex);
    CHECK_FALSE(wait_until(changed, lock, stop.get_token(), TimePoint::max(),
                           [&] { return waiter.look(); }));
    CHECK(waiter.looks < few);
}

TEST_CASE("a wait ends at its deadline and not before") {
    Waiter waiter;
    std::condition_variable changed;
    std::condition_variable_any stoppable;
    std::unique_lock lock(waiter.mutex);
    // A wait that goes on behind its deadline looks again and again, and ends.
    const auto never = [&] { return !waiter.look() && waiter.looks > few; };
    TimePoint deadline = Clock::now() + 20ms;
    CHECK_FALSE(wait_until(changed, lock, deadline, never));
    CHECK(Clock::now() >= deadline);
    deadline = Clock::now() + 20ms;
    CHECK_FALSE(wait_until(stoppable, lock, std::stop_token(), deadline, never));
    CHECK(Clock::now() >= deadline);
    CHECK_FALSE(wait_until(changed, lock, TimePoint::min(), never));
    CHECK_FALSE(wait_until(stoppable, lock, std::stop_token(), TimePoint::min(), never));
}

TEST_CASE("what is ready already is not waited for, whatever the deadline") {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable changed;
    std::condition_variable_any stoppable;
    const auto at_once = [] { return true; };
    CHECK(wait_until(changed, lock, TimePoint::min(), at_once));
    CHECK(wait_until(stoppable, lock, std::stop_token(), TimePoint::min(), at_once));
}

} // namespace timed_wait_test
