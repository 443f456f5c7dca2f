// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/worker/polling/polling_sequence.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace polling_sequence_test {

using orizuru::QueueOrder;
using orizuru::detail::PollingSequence;

PollingSequence sequence(QueueOrder order, const std::vector<int>& weights) {
    PollingSequence made(order);
    std::ranges::for_each(weights, [&](int weight) { made.add(weight); });
    return made;
}

/// How often the first queue precedes the second in 10,000 draws. Each draw has all queues.
int times_first(PollingSequence sequence) {
    int first = 0;
    for (int i = 0; i < 10'000; ++i) {
        std::vector<std::size_t> drawn = sequence.next();
        first += std::ranges::find(drawn, 0U) < std::ranges::find(drawn, 1U) ? 1 : 0;
        std::ranges::sort(drawn);
        REQUIRE(drawn == std::vector<std::size_t>{0, 1, 2});
    }
    return first;
}

TEST_CASE("in strict order queues come as they were given, whatever they weigh") {
    PollingSequence strict = sequence(QueueOrder::strict, {1, 100, 10});
    for (int i = 0; i < 10; ++i) {
        CHECK(strict.next() == std::vector<std::size_t>{0, 1, 2});
    }
}

TEST_CASE("a queue with three times the weight is three times as often before the other") {
    // 7500 are expected; eight standard deviations are 350.
    const int first = times_first(sequence(QueueOrder::weighted, {30, 10, 1}));
    CHECK(first > 7150);
    CHECK(first < 7850);
}

TEST_CASE("in random order all queues are alike, whatever they weigh") {
    // 5000 are expected; eight standard deviations are 400.
    const int first = times_first(sequence(QueueOrder::random, {100, 1, 1}));
    CHECK(first > 4600);
    CHECK(first < 5400);
}

TEST_CASE("in strict order the shards of a queue take turns, between the queues around them") {
    PollingSequence strict = sequence(QueueOrder::strict, {1, 1, 1, 1, 1});
    strict.join(1, 3);
    CHECK(strict.next() == std::vector<std::size_t>{0, 2, 3, 1, 4});
    CHECK(strict.next() == std::vector<std::size_t>{0, 3, 1, 2, 4});
    CHECK(strict.next() == std::vector<std::size_t>{0, 1, 2, 3, 4});
}

} // namespace polling_sequence_test
