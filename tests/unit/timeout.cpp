// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/timeout.hpp>
#include <orizuru/detail/base/wake.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

namespace timeout_test {

using namespace std::chrono_literals;
using orizuru::detail::Clock;
using orizuru::detail::Timeout;
using orizuru::detail::TimePoint;

TEST_CASE("a timeout runs from when its end is first asked for, and stays") {
    Timeout timeout(1h);
    const TimePoint before = Clock::now();
    const TimePoint deadline = timeout.deadline();
    CHECK(deadline >= before + 1h);
    CHECK(deadline <= Clock::now() + 1h);
    CHECK(timeout.deadline() == deadline);
}

TEST_CASE("a timeout of nothing, or less, is over at once; one without end never") {
    const TimePoint none = Timeout(0ms).deadline();
    const TimePoint less = Timeout(-1h).deadline();
    CHECK(std::max(none, less) <= Clock::now());
    CHECK(Timeout::never().deadline() == TimePoint::max());
}

} // namespace timeout_test
