// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/base/jittered_pauses.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

namespace jittered_pauses_test {

using namespace std::chrono_literals;
using orizuru::detail::JitteredPauses;

/// The longest of many waiting times drawn after `attempts` failures. A bound b is overshot by
/// none, and all of 200 lie below b / 2 once in 2^200 runs.
std::chrono::milliseconds longest_after(int attempts) {
    JitteredPauses backoff;
    auto longest = 0ms;
    for (int i = 0; i < 200; ++i) {
        backoff.reset();
        for (int attempt = 0; attempt < attempts; ++attempt) {
            static_cast<void>(backoff.next());
        }
        const auto wait = backoff.next();
        CHECK(wait >= 1ms);
        longest = std::max(longest, wait);
    }
    return longest;
}

TEST_CASE("the bound of a waiting time doubles from 50 ms and stays at 5 s") {
    auto bound = 50ms;
    for (int attempts = 0; attempts < 12; ++attempts) {
        CAPTURE(attempts);
        const auto longest = longest_after(attempts);
        CHECK(longest <= bound);
        CHECK(longest > bound / 2);
        bound = std::min(2 * bound, std::chrono::milliseconds(5s));
    }
}

TEST_CASE("waiting times stay in bounds however many attempts fail") {
    JitteredPauses backoff;
    for (int i = 0; i < 100'000; ++i) {
        const auto wait = backoff.next();
        REQUIRE(wait >= 1ms);
        REQUIRE(wait <= 5s);
    }
}

TEST_CASE("within a shorter bound, waiting times are drawn and not cut") {
    JitteredPauses backoff;
    int longest = 0;
    for (int i = 0; i < 200; ++i) {
        const auto wait = backoff.next(100ms);
        REQUIRE(wait <= 100ms);
        longest += wait == 100ms ? 1 : 0;
    }
    CHECK(longest < 50); // one of a hundred; of those cut, nearly all
}

TEST_CASE("within no time at all, a waiting time is 1 ms") {
    JitteredPauses backoff;
    CHECK(backoff.next(0ms) == 1ms);
}

TEST_CASE("a reset begins at 50 ms again") {
    JitteredPauses backoff;
    for (int i = 0; i < 20; ++i) {
        for (int j = 0; j < 20; ++j) {
            static_cast<void>(backoff.next());
        }
        backoff.reset();
        CHECK(backoff.next() <= 50ms);
    }
}

TEST_CASE("two clients do not wait in step") {
    JitteredPauses one;
    JitteredPauses other;
    int different = 0;
    for (int i = 0; i < 100; ++i) {
        different += one.next() != other.next() ? 1 : 0;
    }
    CHECK(different > 50);
}

} // namespace jittered_pauses_test
