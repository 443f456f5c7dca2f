// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

namespace retry_test {

using namespace std::chrono_literals;
using orizuru::Backoff;
using orizuru::JobTime;
using orizuru::next_try;
using orizuru::RetryDecision;
using orizuru::RetryPolicy;
namespace backoff = orizuru::backoff;
using std::chrono::milliseconds;

std::vector<milliseconds> first(int count, const Backoff& delay, std::uint64_t seed = 1) {
    std::vector<milliseconds> delays;
    for (int attempt = 1; attempt <= count; ++attempt) {
        delays.push_back(delay(attempt, seed));
    }
    return delays;
}

const JobTime birth(1'000'000ms);

TEST_CASE("delays are what their names say") {
    using Delays = std::vector<milliseconds>;
    CHECK(first(3, backoff::fixed(7ms)) == Delays{7ms, 7ms, 7ms});
    CHECK(first(4, backoff::linear(10ms, 35ms)) == Delays{10ms, 20ms, 30ms, 35ms});
    CHECK(first(4, backoff::exponential(10ms, 70ms)) == Delays{10ms, 20ms, 40ms, 70ms});
    CHECK(first(3, backoff::exponential(10ms, 1h, 3)) == Delays{10ms, 30ms, 90ms});
    CHECK(first(4, backoff::list({1s, 5s})) == Delays{1s, 5s, 5s, 5s});
}

TEST_CASE("a policy decides by the number of the try, by the job, or by nothing") {
    RetryPolicy policy;
    CHECK_FALSE(policy.decide);
    policy.decide = [](const std::exception_ptr&, int attempt) {
        return RetryDecision{.delay = milliseconds(attempt)};
    };
    const orizuru::JobAttributes attributes{{"tenant", "x"}};
    const orizuru::FailedJob job{"id", "kind", 3, attributes};
    CHECK(policy.decide(nullptr, job).delay == 3ms);
    CHECK(policy.decide(nullptr, 4).delay == 4ms);
    policy.decide = [](const std::exception_ptr&, const orizuru::FailedJob& failed) {
        return RetryDecision{.delay = milliseconds(failed.kind.size() + failed.attributes.size())};
    };
    CHECK(policy.decide(nullptr, job).delay == 5ms);
    CHECK(policy.decide(nullptr, 4).delay == 0ms);
    policy.decide = std::function<RetryDecision(const std::exception_ptr&, int)>();
    CHECK_FALSE(policy.decide);
    policy.decide = nullptr;
    CHECK_FALSE(policy.decide);
}

TEST_CASE("the polynomial delay is n⁴ + 15 s and up to 10 (n + 1) s") {
    const Backoff delay = backoff::polynomial();
    for (int before = 0; before < 25; ++before) {
        const milliseconds least = std::chrono::seconds(before * before * before * before + 15);
        const milliseconds range = std::chrono::seconds(10 * (before + 1));
        milliseconds lowest = milliseconds::max();
        milliseconds highest{};
        for (std::uint64_t seed = 0; seed < 1000; ++seed) {
            const milliseconds one = delay(before + 1, seed);
            lowest = std::min(lowest, one);
            highest = std::max(highest, one);
        }
        CAPTURE(before);
        CHECK(lowest >= least);
        CHECK(lowest < least + range / 50);
        CHECK(highest < least + range);
        CHECK(highest > least + range - range / 50);
    }
    milliseconds all{};
    for (const milliseconds one : first(25, delay)) {
        all += one;
    }
    CHECK(all > std::chrono::days(20));
    CHECK(all < std::chrono::days(22));
}

TEST_CASE("full jitter takes from nothing to all of a delay, evenly, and again the same") {
    const Backoff delay = backoff::full_jitter(backoff::fixed(10s));
    std::vector<int> tenths(10);
    for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
        const milliseconds one = delay(1, seed);
        CHECK(one == delay(1, seed));
        REQUIRE(one >= 0s);
        REQUIRE(one < 10s);
        ++tenths[static_cast<std::size_t>(one / 1s)];
    }
    for (const int count : tenths) {
        CHECK(count > 850);
        CHECK(count < 1150);
    }
    CHECK(delay(1, 5) != delay(2, 5));
}

TEST_CASE("no delay overflows, however often something failed") {
    const milliseconds century = std::chrono::hours(24 * 365 * 100);
    for (const Backoff& delay :
         {backoff::linear(24h), backoff::exponential(1ms), backoff::polynomial()}) {
        const milliseconds last = delay(std::numeric_limits<int>::max(), 1);
        CHECK(last > 24h);
        CHECK(last <= century);
    }
    CHECK(backoff::exponential(0ms)(5000, 1) <= century);
}

TEST_CASE("a delay that cannot be is refused when it is made") {
    CHECK_THROWS_AS(static_cast<void>(backoff::fixed(-1ms)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(backoff::linear(-1ms)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(backoff::linear(1ms, -1ms)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(backoff::exponential(-1ms)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(backoff::exponential(1ms, 1h, 0.5)), std::invalid_argument);
    CHECK_THROWS_AS(
        static_cast<void>(backoff::exponential(1ms, 1h, std::numeric_limits<double>::quiet_NaN())),
        std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(backoff::list({})), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(backoff::list({1ms, -1ms})), std::invalid_argument);
}

TEST_CASE("a job is tried max_attempts times") {
    const RetryPolicy policy{.max_attempts = 3, .backoff = backoff::fixed(1s)};
    CHECK(next_try(policy, 1, birth, birth, 1) == 1s);
    CHECK(next_try(policy, 2, birth, birth, 1) == 1s);
    CHECK_FALSE(next_try(policy, 3, birth, birth, 1));
    CHECK_FALSE(next_try(policy, 4, birth, birth, 1));
    CHECK_FALSE(next_try({.max_attempts = 1}, 1, birth, birth, 1));
}

TEST_CASE("a job is not put off beyond retry_for after its first failure") {
    const RetryPolicy policy{.backoff = backoff::fixed(10s), .retry_for = 60s};
    CHECK(next_try(policy, 1, birth, birth + 50s, 1) == 10s);
    CHECK_FALSE(next_try(policy, 1, birth, birth + 50s + 1ms, 1));
    CHECK(next_try({.backoff = backoff::fixed(10s)}, 1, birth, birth + 9000h, 1) == 10s);
}

TEST_CASE("a delay of whatever length leaves a time that can be written") {
    const auto wait = [](milliseconds delay) {
        return next_try({.backoff = [=](int, std::uint64_t) { return delay; }}, 1, birth, birth, 1);
    };
    CHECK(wait(-1ms) == 0ms);
    CHECK(wait(milliseconds::min()) == 0ms);
    CHECK(wait(milliseconds::max()) == orizuru::detail::longest_backoff);
}

TEST_CASE("no delay grows out of none, however often something failed") {
    CHECK(backoff::exponential(0ms)(2000, 1) == 0ms);
}

TEST_CASE("a job from a clock that is ahead is tried again") {
    const RetryPolicy policy{.backoff = backoff::fixed(1s), .retry_for = milliseconds::max()};
    CHECK(next_try(policy, 1, birth + 1ms, birth, 1) == 1s);
}

} // namespace retry_test
