// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Which consumers a collector asks about next.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/collector/awaited_consumers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace awaited_consumers_test {

using namespace std::chrono_literals;
using orizuru::detail::AwaitedConsumers;
using orizuru::detail::Clock;
using orizuru::detail::TimePoint;
using Ids = std::vector<std::string>;

TEST_CASE("while all waits go on, one question keeps the series going") {
    AwaitedConsumers awaited;
    CHECK(awaited.next() == TimePoint::max());
    CHECK(awaited.take_due().empty());
    const TimePoint begun = Clock::now();
    for (const std::string id : {"a", "b", "c"}) {
        awaited.add(id, 1h, 20s);
    }
    CHECK(awaited.next() >= begun + 10s); // half a gap
    CHECK(awaited.next() <= Clock::now() + 10s);
    CHECK(awaited.take_due().size() == 1);
    CHECK(awaited.next() >= begun + 1h); // until that one is added again
}

TEST_CASE("those whose waits are over are asked about together, the others stay") {
    AwaitedConsumers awaited;
    awaited.add("later", 1h, 24h);
    awaited.add("a", 0ms, 24h);
    awaited.add("b", 0ms, 24h);
    CHECK(awaited.next() <= Clock::now() + 1ms);
    Ids due = awaited.take_due();
    std::ranges::sort(due);
    CHECK(due == Ids{"a", "b"});
    CHECK(awaited.take_due() == Ids{"later"});
    awaited.add("a", 1s, 2s);
    awaited.clear();
    CHECK(awaited.next() == TimePoint::max());
}

} // namespace awaited_consumers_test
