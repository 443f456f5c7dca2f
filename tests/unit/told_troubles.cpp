// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/consumer/lane_events.hpp>

#include <doctest/doctest.h>

#include <chrono>

namespace told_troubles_test {

using namespace std::chrono_literals;
using orizuru::detail::Clock;
using orizuru::detail::TimePoint;
using orizuru::detail::ToldTroubles;

const TimePoint begin = Clock::now();

TEST_CASE("a break and its end are told once") {
    ToldTroubles told;
    CHECK_FALSE(told.end_break());
    CHECK(told.begin_break());
    CHECK_FALSE(told.begin_break());
    CHECK(told.end_break());
    CHECK_FALSE(told.end_break());
    CHECK(told.begin_break());
}

TEST_CASE("a slot that has been on its way for 5 s is told of once") {
    ToldTroubles told;
    CHECK_FALSE(told.migrates_long(begin));
    CHECK_FALSE(told.migrates_long(begin + 4s));
    CHECK(told.migrates_long(begin + 5s));
    CHECK_FALSE(told.migrates_long(begin + 9s));
}

TEST_CASE("a slot that was somewhere in between is on its way anew") {
    ToldTroubles told;
    CHECK_FALSE(told.migrates_long(begin));
    told.forget_migration();
    CHECK_FALSE(told.migrates_long(begin + 4s));
    CHECK_FALSE(told.migrates_long(begin + 8s));
    CHECK(told.migrates_long(begin + 9s));
}

TEST_CASE("a refusal behind a long pause, which may have been read late, says nothing alone") {
    ToldTroubles told;
    CHECK_FALSE(told.migrates_long(begin));
    CHECK_FALSE(told.migrates_long(begin + 6s));
    SUBCASE("the next one does") { CHECK(told.migrates_long(begin + 7s)); }
    SUBCASE("also where one seldom asks") { CHECK(told.migrates_long(begin + 16s)); }
    SUBCASE("it does not count for the next move") {
        told.forget_migration();
        CHECK_FALSE(told.migrates_long(begin + 7s));
        CHECK_FALSE(told.migrates_long(begin + 13s));
        CHECK(told.migrates_long(begin + 14s));
    }
}

TEST_CASE("one move is not told of again behind a long pause") {
    ToldTroubles told;
    CHECK_FALSE(told.migrates_long(begin));
    CHECK(told.migrates_long(begin + 5s));
    for (const auto later : {11s, 17s, 18s}) {
        CHECK_FALSE(told.migrates_long(begin + later));
    }
}

} // namespace told_troubles_test
