// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/consumer/attendance.hpp>

#include <doctest/doctest.h>

namespace attendance_test {

using orizuru::detail::Attendance;
using Wakes = Attendance::Wakes;

TEST_CASE("the heartbeat begins when it is asked, goes on without being told so, and comes to an "
          "end") {
    Attendance attendance;
    CHECK_FALSE(attendance.wanted());
    SUBCASE("at once") { CHECK(attendance.ask() == Wakes::watchers); }
    SUBCASE("the next time it looks") { attendance.request(); }
    CHECK(attendance.wanted());
    CHECK(attendance.begin());
    CHECK(attendance.wanted());
    CHECK_FALSE(attendance.begin());
    attendance.end();
    CHECK_FALSE(attendance.wanted());
}

TEST_CASE("what is asked while the heartbeat attends outlasts the end") {
    Attendance attendance;
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
    Attendance attendance;
    attendance.end();
    CHECK_FALSE(attendance.wanted());
    attendance.request();
    attendance.end();
    CHECK(attendance.wanted());
}

TEST_CASE("the heartbeat is woken for what the user has to hear of, unless a thread sees it") {
    Attendance attendance;
    {
        const auto one = attendance.driving();
        {
            const auto another = attendance.driving();
            CHECK(attendance.tell() == Wakes::nobody);
        }
        CHECK(attendance.tell() == Wakes::nobody);
    }
    CHECK_FALSE(attendance.wanted());
    CHECK(attendance.tell() == Wakes::watchers);
    CHECK(attendance.tell() == Wakes::watchers); // it has not begun
    CHECK(attendance.begin());
    CHECK(attendance.tell() == Wakes::nobody);
}

TEST_CASE("a thread that polls is woken once when the link is free, and asks the heartbeat for "
          "that") {
    Attendance attendance;
    CHECK(attendance.link_is_free() == Wakes::nobody);
    CHECK(attendance.await_link() == Wakes::watchers);
    CHECK(attendance.link_is_awaited());
    CHECK(attendance.wanted());
    CHECK(attendance.link_is_free() == Wakes::watchers);
    CHECK_FALSE(attendance.link_is_awaited());
    CHECK(attendance.link_is_free() == Wakes::nobody);
}

TEST_CASE("acks hurry while a caller wants it or the heartbeat attends") {
    Attendance attendance;
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
