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

TEST_CASE("refusals that are further apart than attempts are of two moves") {
    ToldTroubles told;
    CHECK_FALSE(told.migrates_long(begin));
    CHECK_FALSE(told.migrates_long(begin + 6s));
    CHECK(told.migrates_long(begin + 11s));
    CHECK_FALSE(told.migrates_long(begin + 17s));
    CHECK(told.migrates_long(begin + 22s));
}

} // namespace told_troubles_test
