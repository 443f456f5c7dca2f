// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/attendance.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <mutex>

namespace attendance_test {

using orizuru::detail::Attendance;
using orizuru::detail::poll_ready;
using orizuru::detail::Wake;

/// An attendance that a thread watches.
struct Watched : Attendance {
    std::mutex mutex;
    Wake wake;
    Watch watch{mutex, *this, wake};

    /// True when the thread was woken since the last call.
    bool woken() {
        const bool signalled = poll_ready(-1, 0, &wake, std::chrono::milliseconds(0)).has_value();
        wake.clear();
        return signalled;
    }
};

TEST_CASE("the heartbeat begins when it is asked, goes on without being told so, and comes to an "
          "end") {
    Watched attendance;
    CHECK_FALSE(attendance.wanted());
    SUBCASE("at once") {
        attendance.ask();
        CHECK(attendance.woken());
    }
    SUBCASE("the next time it looks") {
        attendance.request();
        CHECK_FALSE(attendance.woken());
    }
    CHECK(attendance.wanted());
    CHECK(attendance.begin());
    CHECK(attendance.wanted());
    CHECK_FALSE(attendance.begin());
    attendance.end();
    CHECK_FALSE(attendance.wanted());
}

TEST_CASE("what is asked while the heartbeat attends outlasts the end") {
    Watched attendance;
    attendance.request();
    attendance.begin();
    attendance.request();
    SUBCASE("which comes first") { attendance.end(); }
    SUBCASE("which comes later") {}
    CHECK(attendance.wanted());
    CHECK(attendance.begin());
    attendance.end();
    CHECK_FALSE(attendance.wanted());
}

TEST_CASE("an end before a begin forgets no request, and makes none") {
    Watched attendance;
    attendance.end();
    CHECK_FALSE(attendance.wanted());
    attendance.request();
    attendance.end();
    CHECK(attendance.wanted());
}

TEST_CASE("the heartbeat is woken for what the user has to hear of, unless a thread sees it") {
    Watched attendance;
    {
        const auto one = attendance.driving();
        {
            const auto another = attendance.driving();
            attendance.ask_for_news();
            CHECK_FALSE(attendance.woken());
        }
        attendance.ask_for_news();
        CHECK_FALSE(attendance.woken());
    }
    CHECK_FALSE(attendance.wanted());
    attendance.ask_for_news();
    CHECK(attendance.woken());
    attendance.ask_for_news();
    CHECK(attendance.woken()); // it has not begun
    CHECK(attendance.begin());
    attendance.ask_for_news();
    CHECK_FALSE(attendance.woken());
}

TEST_CASE("a thread that polls is woken once when the link is free, and asks the heartbeat for "
          "that") {
    Watched attendance;
    attendance.link_is_free();
    CHECK_FALSE(attendance.woken());
    attendance.await_link();
    CHECK(attendance.woken());
    CHECK(attendance.link_is_awaited());
    CHECK(attendance.wanted());
    attendance.link_is_free();
    CHECK(attendance.woken());
    CHECK_FALSE(attendance.link_is_awaited());
    attendance.link_is_free();
    CHECK_FALSE(attendance.woken());
}

TEST_CASE("acks hurry while a caller wants it or the heartbeat attends") {
    Watched attendance;
    CHECK_FALSE(attendance.hurries());
    {
        const auto hurrying = attendance.hurrying();
        CHECK(attendance.hurries());
    }
    attendance.request();
    CHECK_FALSE(attendance.hurries());
    attendance.begin();
    CHECK(attendance.hurries());
    attendance.request();
    CHECK(attendance.hurries());
    attendance.end();
    CHECK_FALSE(attendance.hurries());
}

} // namespace attendance_test
