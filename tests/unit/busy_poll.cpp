// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/busy_poll.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/usable_cpus.hpp>
#include <orizuru/detail/base/wake.hpp>

#include <doctest/doctest.h>

#include <poll.h>
#include <sched.h>

#include <chrono>
#include <limits>
#include <thread>

namespace busy_poll_test {

using namespace std::chrono_literals;
using orizuru::detail::BusyPoll;
using orizuru::detail::Clock;
using orizuru::detail::TimePoint;
using orizuru::detail::Wake;

// How many short waits it takes until the next one polls.
int short_waits_until_polling(BusyPoll& poll) {
    int count = 0;
    while (poll.budget() == BusyPoll::Duration::zero()) {
        poll.slept(50us);
        ++count;
        REQUIRE(count <= 10'000);
    }
    return count;
}

void miss_until_sleeping(BusyPoll& poll) {
    while (poll.budget() > BusyPoll::Duration::zero()) {
        poll.polled(poll.budget(), false);
    }
}

TEST_CASE("the first wait sleeps, and a wait behind a short one polls for 50 us") {
    BusyPoll poll(2);
    CHECK(poll.budget() == 0us);
    poll.slept(100us);
    CHECK(poll.budget() == 50us);
}

TEST_CASE("with one CPU no wait polls") {
    BusyPoll poll(1);
    CHECK_FALSE(poll.useful());
}

TEST_CASE("long waits never lead to polling") {
    BusyPoll poll(2);
    for (int i = 0; i < 1000; ++i) {
        poll.slept(201us);
    }
    CHECK(poll.budget() == 0us);
}

TEST_CASE("each wait that polled in vain halves the time, until waits sleep") {
    BusyPoll poll(2);
    poll.slept(1us);
    poll.polled(poll.budget(), false);
    CHECK(poll.budget() == 25us);
    poll.polled(poll.budget(), false);
    CHECK(poll.budget() > 10us);
    poll.polled(poll.budget(), false);
    CHECK(poll.budget() == 0us);
}

TEST_CASE("whenever polling did not pay, it takes twice as many short waits, up to 1024") {
    BusyPoll poll(2);
    for (const int expected : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024}) {
        CHECK(short_waits_until_polling(poll) == expected);
        miss_until_sleeping(poll);
    }
}

TEST_CASE("a thread that loses its CPU while it polls sleeps from then on, also when the answer is "
          "there") {
    for (const bool answered : {true, false}) {
        BusyPoll poll(2);
        short_waits_until_polling(poll);
        poll.polled(151us, answered);
        CHECK(poll.budget() == 0us);
        CHECK(short_waits_until_polling(poll) == 2);
    }
}

TEST_CASE("a long wait among the short ones begins their count anew") {
    BusyPoll poll(2);
    poll.slept(1us);
    miss_until_sleeping(poll);
    poll.slept(1us);
    poll.slept(10ms);
    poll.slept(1us);
    CHECK(poll.budget() == 0us);
    poll.slept(1us);
    CHECK(poll.budget() == 50us);
}

TEST_CASE("a wait that was answered while it polled restores the whole time") {
    BusyPoll poll(2);
    short_waits_until_polling(poll);
    poll.polled(50us, false);
    CHECK(poll.budget() == 25us);
    poll.polled(20us, true);
    CHECK(poll.budget() == 50us);
}

TEST_CASE("a thousand answers in time halve the number of short waits, and fewer do not") {
    BusyPoll poll(2);
    for (int i = 0; i < 5; ++i) {
        short_waits_until_polling(poll);
        miss_until_sleeping(poll);
    }
    CHECK(short_waits_until_polling(poll) == 32);
    for (int i = 0; i < 999; ++i) {
        poll.polled(20us, true);
    }
    miss_until_sleeping(poll);
    CHECK(short_waits_until_polling(poll) == 64);
    for (int i = 0; i < 2000; ++i) {
        poll.polled(20us, true);
    }
    miss_until_sleeping(poll);
    CHECK(short_waits_until_polling(poll) == 32);
}

TEST_CASE("a wait that polls ends by what is ready, by the wake and at the deadline") {
    BusyPoll poll(2);
    const Wake ready;
    const Wake wake;
    poll.slept(1us);
    SUBCASE("ready") {
        ready.signal();
        CHECK(wait_ready(poll, ready.fd(), POLLIN, &wake, Clock::now() + 1min) == POLLIN);
        CHECK(poll.budget() == 50us);
    }
    SUBCASE("the wake") {
        wake.signal();
        CHECK(wait_ready(poll, ready.fd(), POLLIN, &wake, Clock::now() + 1min) == 0);
        CHECK(poll.budget() == 50us);
    }
    SUBCASE("the deadline") {
        const TimePoint deadline = Clock::now() + 2ms;
        CHECK(wait_ready(poll, ready.fd(), POLLIN, &wake, deadline) == 0);
        CHECK(Clock::now() >= deadline);
        CHECK(poll.budget() == 25us);
    }
    SUBCASE("a deadline long past") {
        CHECK(wait_ready(poll, ready.fd(), POLLIN, &wake, TimePoint()) == 0);
    }
}

TEST_CASE("a quota of a control group counts in whole CPUs, at least one") {
    using orizuru::detail::whole_cpus;
    constexpr int unlimited = std::numeric_limits<int>::max();
    CHECK(whole_cpus("max 100000\n") == unlimited);
    CHECK(whole_cpus("50000 100000\n") == 1);
    CHECK(whole_cpus("100000 100000\n") == 1);
    CHECK(whole_cpus("199999 100000\n") == 1);
    CHECK(whole_cpus("250000 100000\n") == 2);
    for (const char* const text : {"", "100000", "100000 ", "100000 0\n", "a b\n"}) {
        CAPTURE(text);
        CHECK(whole_cpus(text) == unlimited);
    }
}

TEST_CASE("a process' control group is that of version 2") {
    using orizuru::detail::control_group;
    CHECK(control_group("0::/system.slice/a.service\n") == "/system.slice/a.service");
    CHECK(control_group("12:cpu:/old\n0::/new") == "/new");
    CHECK(control_group("0::/\n") == "/");
    CHECK(control_group("12:cpu:/old\n").empty());
    CHECK(control_group("").empty());
}

TEST_CASE("a thread that is bound to one CPU has one to use") {
    int bound = 0;
    std::thread([&] {
        cpu_set_t all;
        REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
        int cpu = 0;
        while (!CPU_ISSET(cpu, &all)) {
            ++cpu;
        }
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
        bound = orizuru::detail::usable_cpus();
    }).join();
    CHECK(bound == 1);
    CHECK(orizuru::detail::usable_cpus() >= 1);
}

} // namespace busy_poll_test
