// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Permits of a rate, for all processes together.

#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/limits/rate_script.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/limits/rate_limit.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace rate_limit_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::JobContext;
using orizuru::JobProducer;
using orizuru::RateLimit;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Worker;
using Clock = std::chrono::steady_clock;

const std::string key = "orizuru:{bank}:rate:";

/// The permits that several connections were given, each between two times.
class Granted {
  public:
    /// Returns how long to wait.
    std::chrono::milliseconds take(RateLimit& limit) {
        const Clock::time_point before = Clock::now();
        const auto wait = limit.take();
        if (wait == 0ms) {
            const std::lock_guard lock(m_mutex);
            m_all.push_back({before, Clock::now()});
        }
        return wait;
    }
    std::size_t count() {
        const std::lock_guard lock(m_mutex);
        return m_all.size();
    }
    /// Whether each span of `per` has at most so many, as far as the times tell.
    bool keep_to(std::size_t most, std::chrono::milliseconds per) {
        std::ranges::sort(m_all, {}, &Permit::before);
        for (std::size_t i = most; i < m_all.size(); ++i) {
            Clock::time_point last;
            for (std::size_t j = i - most; j <= i; ++j) {
                last = std::max(last, m_all[j].after);
            }
            if (last - m_all[i - most].before < per) {
                return false;
            }
        }
        return true;
    }

  private:
    struct Permit {
        Clock::time_point before;
        Clock::time_point after;
    };
    std::mutex m_mutex;
    std::vector<Permit> m_all;
};

TEST_CASE_FIXTURE(WorkerFixture, "no span of a rate has more permits, whoever takes them") {
    Granted granted;
    {
        std::vector<std::jthread> takers;
        for (int i = 0; i < 3; ++i) {
            takers.emplace_back([&] {
                RateLimit limit(uri, "bank", {.most = 25, .per = 500ms});
                REQUIRE(eventually([&] {
                    granted.take(limit);
                    return granted.count() >= 90;
                }));
            });
        }
    }
    CHECK(granted.keep_to(25, 500ms));
}

TEST_CASE_FIXTURE(WorkerFixture, "where all permits are wanted, 95 to 100 % are given, by what the "
                                 "script reckons with given times") {
    // So many ask when they are told to, and again once they have a permit, a little late.
    const std::string given_to = std::string(orizuru::detail::rate_functions) + R"lua(
local apart, late, span, callers, length = unpack(ARGV)
local asks, given, begun = {}, 0, span * 2
for i = 1, callers do asks[i] = begun end
while true do
    local first = 1
    for i = 2, #asks do first = asks[i] < asks[first] and i or first end
    local now = asks[first]
    if now >= begun + length then return given end
    local taken, wait = take_due(KEYS[1], now, apart, late, tonumber(span), 1, math.huge)
    given = given + taken
    asks[first] = now + wait * 1000 + 100
end)lua";
    for (const orizuru::Rate& rate : std::vector<orizuru::Rate>{
             {1, 1s}, {3, 100ms}, {25, 500ms}, {100, 1s}, {2000, 1s}, {100, 1min}, {1000, 1h}}) {
        const auto spacing = orizuru::detail::RateSpacing::of(rate);
        for (const int callers : {1, 3, 20}) {
            CAPTURE(rate.most);
            CAPTURE(callers);
            redis.command({"DEL", key});
            const auto given =
                redis
                    .command({"EVAL", given_to, "1", key, std::to_string(spacing.apart.count()),
                              std::to_string(spacing.late.count()),
                              std::to_string(spacing.per.count()), std::to_string(callers),
                              std::to_string(20 * spacing.per.count())})
                    .integer;
            CHECK(given >= 19 * rate.most);
            CHECK(given <= 20 * rate.most);
        }
    }
}

TEST_CASE_FIXTURE(WorkerFixture, "who has to wait is told when, and no two the same time") {
    RateLimit limit(uri, "bank", {.most = 1, .per = 10min});
    CHECK(limit.take() == 0ms);
    const auto first = limit.take();
    CHECK(first > 9min);
    CHECK(first <= 10min + 50ms);
    const auto second = limit.take();
    CHECK(second > first + 9min);
    CHECK(second <= first + 10min + 50ms);
    CHECK(limit.take("other") == 0ms);
    CHECK(limit.take("other") > 9min);
}

TEST_CASE_FIXTURE(WorkerFixture, "one that waits as it was told has its permit") {
    RateLimit limit(uri, "bank", {.most = 10, .per = 1s});
    int asked = 0;
    for (int permits = 0; permits < 5;) {
        const auto wait = limit.take();
        permits += wait == 0ms ? 1 : 0;
        ++asked;
        std::this_thread::sleep_for(wait);
    }
    CHECK(asked <= 10);
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "when permits go unused, others do not wait for those who waited") {
    RateLimit limit(uri, "bank", {.most = 10, .per = 1s});
    redis.command({"SET", key, "1 99999999999999999"}); // due long ago; told for long
    CHECK(limit.take() == 0ms);
    CHECK(limit.take() < 1s);
}

TEST_CASE_FIXTURE(WorkerFixture, "a limit that nobody uses leaves nothing in Redis") {
    RateLimit limit(uri, "bank", {.most = 10, .per = 1h});
    REQUIRE(limit.take("a") == 0ms);
    const auto expires = redis.command({"PTTL", key + "a"}).integer;
    CHECK(expires > 0);
    CHECK(expires <= 2 * 3'600'000);
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "a clock that is set back stops nobody for longer than one permit") {
    RateLimit limit(uri, "bank", {.most = 1, .per = 1s});
    redis.command({"SET", key, "99999999999999999 0"});
    CHECK(limit.take() <= 1050ms);
}

TEST_CASE_FIXTURE(WorkerFixture, "handlers keep to a rate, and each job is done once") {
    JobProducer<Raw> producer(uri, "q");
    for (int i = 0; i < 20; ++i) {
        producer.push({std::to_string(i)});
    }
    Granted granted;
    RateLimit limit(uri, "bank", {.most = 10, .per = 500ms});
    orizuru::WorkerOptions chosen = options(4);
    chosen.scheduler.emplace();
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", [&](const Raw& payload, JobContext<Raw>& job) {
        if (const auto wait = granted.take(limit); wait > 0ms) {
            push_after(*job.guard(), wait);
            return;
        }
        CHECK(job.attempt() == 1);
        handled.add(payload.bytes);
    });
    const Running running(worker);
    CHECK(eventually([&] { return handled.size() == 20; }));
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(handled.size() == 20);
    CHECK(granted.keep_to(10, 500ms));
}

TEST_CASE_FIXTURE(WorkerFixture, "a rate that cannot be, and a key of another type, are refused") {
    for (const orizuru::Rate& rate : std::vector<orizuru::Rate>{
             {.most = 0}, {.most = 1'000'001}, {.per = 0ms}, {.per = 24h + 1ms}}) {
        CHECK_THROWS_AS(RateLimit(uri, "bank", rate), std::invalid_argument);
    }
    CHECK_THROWS_AS(RateLimit(uri, "", {}), std::invalid_argument);
    RateLimit limit(uri, "bank", {});
    CHECK_THROWS_AS(static_cast<void>(limit.take(std::string(513, 'x'))), std::invalid_argument);
    redis.lpush(key, {"x"});
    try {
        static_cast<void>(limit.take());
        FAIL("it was not refused");
    } catch (const ReplyError& error) {
        CHECK(error.code() == "WRONGTYPE");
        CHECK(std::string(error.what()).find(key) != std::string::npos);
    }
    CHECK(redis.lrange(key) == Texts{"x"});
}

} // namespace rate_limit_test
