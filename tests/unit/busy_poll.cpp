// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/eventually.hpp"

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/busy_poll.hpp>

#include <doctest/doctest.h>

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <thread>

namespace busy_poll_test {

using namespace std::chrono_literals;
using orizuru::detail::BusyPoll;
using orizuru::detail::Clock;
using orizuru::detail::TimePoint;
using orizuru::detail::Wake;
using orizuru::test::eventually;

// How many waits that sleep it takes until the next one polls.
int waits_until_polling(BusyPoll& poll, BusyPoll::Duration time = 60us) {
    int count = 0;
    while (poll.budget() == BusyPoll::Duration::zero()) {
        poll.slept(time);
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

TEST_CASE("after eight waits that slept for long enough to wake a CPU, the next polls for 50 us") {
    BusyPoll poll(2);
    for (int i = 0; i < 7; ++i) {
        poll.slept(60us);
        CHECK(poll.budget() == 0us);
    }
    poll.slept(60us);
    CHECK(poll.budget() == 50us);
}

TEST_CASE("a wait for several replies polls for as long as two waits") {
    BusyPoll poll(2);
    CHECK(poll.budget(2) == 0us);
    waits_until_polling(poll);
    CHECK(poll.budget(1) == 50us);
    CHECK(poll.budget(2) == 100us);
    CHECK(poll.budget(9) == 100us);
}

TEST_CASE("with one CPU no wait polls") {
    BusyPoll poll(1);
    CHECK_FALSE(poll.useful());
}

TEST_CASE("waits that are long, or so short that Redis is on the same CPU, never lead to polling") {
    for (const auto time : {1us, 12us, 15us, 201us, 1'000'000us}) {
        BusyPoll poll(2);
        for (int i = 0; i < 1000; ++i) {
            poll.slept(time);
        }
        CHECK(poll.budget() == 0us);
    }
}

TEST_CASE("polling begins where a CPU that does not fall asleep is woken at once") {
    BusyPoll poll(2);
    for (int i = 0; i < 8; ++i) {
        poll.slept(20us);
    }
    CHECK(poll.budget() > 0us);
}

TEST_CASE("one of these among the others begins the count anew") {
    BusyPoll poll(2);
    for (int i = 0; i < 7; ++i) {
        poll.slept(60us);
    }
    poll.slept(10ms);
    for (int i = 0; i < 7; ++i) {
        poll.slept(60us);
    }
    CHECK(poll.budget() == 0us);
    poll.slept(60us);
    CHECK(poll.budget() == 50us);
}

TEST_CASE("16 waits that polled in vain do not count, since Redis' CPU has slept, too; then each "
          "halves the time, until waits sleep") {
    BusyPoll poll(2);
    waits_until_polling(poll);
    for (int i = 0; i < 16; ++i) {
        poll.polled(50us, false);
        CHECK(poll.budget() == 50us);
    }
    poll.polled(50us, false);
    CHECK(poll.budget() == 25us);
    poll.polled(25us, false);
    CHECK(poll.budget() > 10us);
    poll.polled(13us, false);
    CHECK(poll.budget() == 0us);
}

TEST_CASE("whenever polling did not pay, it takes twice as many waits, up to 1024") {
    BusyPoll poll(2);
    for (const int expected : {8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024}) {
        CHECK(waits_until_polling(poll) == expected);
        miss_until_sleeping(poll);
    }
}

TEST_CASE("a thread that loses its CPU while it polls sleeps from then on, also when the answer is "
          "there") {
    for (const bool answered : {true, false}) {
        BusyPoll poll(2);
        waits_until_polling(poll);
        poll.polled(151us, answered);
        CHECK(poll.budget() == 0us);
        CHECK(waits_until_polling(poll) == 16);
    }
}

TEST_CASE("waits that poll go on doing so while they are a quarter shorter than those that slept") {
    BusyPoll poll(2);
    waits_until_polling(poll, 80us);
    for (int i = 0; i < 10'000; ++i) {
        poll.polled(59us, true);
    }
    CHECK(poll.budget() == 50us);
}

TEST_CASE("waits that poll for as long as others slept soon sleep, too") {
    BusyPoll poll(2);
    waits_until_polling(poll, 80us);
    for (int i = 0; i < 63; ++i) {
        poll.polled(61us, true);
    }
    CHECK(poll.budget() == 50us);
    poll.polled(61us, true);
    CHECK(poll.budget() == 0us);
}

TEST_CASE("a wait that was answered while it polled restores the whole time") {
    BusyPoll poll(2);
    waits_until_polling(poll);
    while (poll.budget() == 50us) {
        poll.polled(50us, false);
    }
    CHECK(poll.budget() == 25us);
    poll.polled(20us, true);
    CHECK(poll.budget() == 50us);
}

TEST_CASE("256 answers in time halve the number of waits, and fewer do not") {
    BusyPoll poll(2);
    for (int i = 0; i < 5; ++i) {
        waits_until_polling(poll);
        miss_until_sleeping(poll);
    }
    CHECK(waits_until_polling(poll) == 256);
    for (int i = 0; i < 255; ++i) {
        poll.polled(20us, true);
    }
    miss_until_sleeping(poll);
    CHECK(waits_until_polling(poll) == 512);
    for (int i = 0; i < 512; ++i) {
        poll.polled(20us, true);
    }
    miss_until_sleeping(poll);
    CHECK(waits_until_polling(poll) == 256);
}

TEST_CASE("a wait that polls ends by what is ready, by the wake and at the deadline") {
    BusyPoll poll(2);
    const Wake ready;
    const Wake wake;
    waits_until_polling(poll);
    SUBCASE("ready") {
        ready.signal();
        // Polling also ends where the kernel takes the CPU away meanwhile.
        CHECK(eventually([&] {
            BusyPoll another(2);
            waits_until_polling(another);
            CHECK(wait_ready(another, ready.fd(), POLLIN, &wake, Clock::now() + 1min) == POLLIN);
            return another.budget() == 50us;
        }));
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

#ifndef ORIZURU_POSIX // which knows of no affinity
TEST_CASE("a process that is bound to one CPU has one to use, whatever its threads are bound to") {
    using orizuru::detail::usable_cpus;
    cpu_set_t all;
    REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all)) {
        ++cpu;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    const int before = usable_cpus();
    CHECK(before >= 1);
    int in_thread = 0;
    std::thread([&] {
        ::sched_setaffinity(0, sizeof one, &one);
        in_thread = usable_cpus();
    }).join();
    CHECK(in_thread == before);
    REQUIRE(::sched_setaffinity(::getpid(), sizeof one, &one) == 0);
    std::thread([&] { in_thread = usable_cpus(); }).join();
    CHECK(in_thread == 1);
    CHECK(usable_cpus() == 1);
    REQUIRE(::sched_setaffinity(::getpid(), sizeof all, &all) == 0);
}
#endif

} // namespace busy_poll_test
