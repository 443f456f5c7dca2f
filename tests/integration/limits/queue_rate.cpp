// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The rate of a queue: what the script grants at any time of Redis' clock, and what workers do with
// it.

#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/limits/grant_script.hpp>
#include <orizuru/detail/limits/permits.hpp>
#include <orizuru/shards/shards.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/handle_shards.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace queue_rate_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::JobDone;
using orizuru::QueueOptions;
using orizuru::Rate;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::detail::grant_script;
using orizuru::detail::grant_spacing;
using Clock = std::chrono::steady_clock;

using Times = std::vector<std::int64_t>; ///< microseconds

/// The most of them in one window, with both its ends. Sorts them.
std::ptrdiff_t most_within(Times& times, std::chrono::microseconds window) {
    std::ranges::sort(times);
    std::ptrdiff_t most = 0;
    for (auto first = times.begin(); first != times.end(); ++first) {
        const auto last = std::upper_bound(first, times.end(), *first + window.count());
        most = std::max(most, last - first);
    }
    return most;
}

/// Asks the script at times that the test chooses.
class Granting : public QueueFixture {
  public:
    Granting() {
        const std::string clock = "redis.call('TIME')";
        m_script.replace(m_script.find(clock), clock.size(), "{ARGV[4], ARGV[5]}");
    }
    /// Returns what the script says, and adds the grants to `granted`.
    std::vector<std::int64_t> ask(std::int64_t now, const Rate& rate, std::int64_t ahead,
                                  int wanted, Times& granted) {
        const Answer answer =
            redis.command({"EVAL", m_script, "1", "rate", std::to_string(grant_spacing(rate)),
                           std::to_string(ahead), std::to_string(wanted),
                           std::to_string(now / 1'000'000), std::to_string(now % 1'000'000)});
        const std::int64_t count = answer.elements.at(0).integer;
        const std::int64_t first_in = answer.elements.at(1).integer;
        for (std::int64_t i = 0; i < count; ++i) {
            granted.push_back(now + first_in + i * grant_spacing(rate));
        }
        return {count, first_in};
    }

  private:
    std::string m_script{grant_script()};
};

TEST_CASE_FIXTURE(Granting, "no window has more grants than the rate says, and with enough who ask "
                            "hardly any fewer") {
    for (unsigned seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        std::minstd_rand random(seed);
        const auto below = [&](std::int64_t end) {
            return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random);
        };
        const Rate rate{static_cast<int>(1 + below(40)), std::chrono::milliseconds(1 + below(999))};
        const std::int64_t ahead = below(2) * below(2'000'000);
        redis.command({"DEL", "rate"});
        Times granted;
        std::int64_t now = 1'800'000'000'000'000;
        for (int i = 0; i < 200; ++i) {
            now += below(2 * grant_spacing(rate));
            const auto said = ask(now, rate, ahead, static_cast<int>(1 + below(5)), granted);
            const std::int64_t count = said[0];
            const std::int64_t first_in = said[1];
            CHECK(first_in >= 0);
            CHECK((count > 0) == (first_in <= ahead));
            if (count == 0) {
                CHECK(first_in <= ahead + grant_spacing(rate));
            }
        }
        CHECK(most_within(granted, rate.per) <= rate.most);
        const std::int64_t last = granted.back(); // which most_within has sorted
        CHECK(last - granted.front() <=
              3 * grant_spacing(rate) * static_cast<std::int64_t>(granted.size()));
    }
}

TEST_CASE_FIXTURE(Granting, "grants ahead of now are spaced as those of now") {
    Times granted;
    const Rate rate{10, 100ms};
    const std::int64_t now = 1'800'000'000'000'000;
    CHECK(ask(now, rate, 35'000, 9, granted) == std::vector<std::int64_t>{4, 0});
    CHECK(ask(now, rate, 35'000, 9, granted) == std::vector<std::int64_t>{0, 40'004});
    CHECK(ask(now + 10'000, rate, 35'000, 9, granted) == std::vector<std::int64_t>{1, 30'004});
    CHECK(granted == Times{now, now + 10'001, now + 20'002, now + 30'003, now + 40'004});
}

TEST_CASE_FIXTURE(Granting, "a clock that is set back holds grants up for one spacing only") {
    Times granted;
    const Rate rate{1, 1s};
    const std::int64_t now = 1'800'000'000'000'000;
    CHECK(ask(now, rate, 0, 1, granted)[0] == 1);
    const std::int64_t earlier = now - 3'600'000'000;
    CHECK(ask(earlier, rate, 0, 1, granted) == std::vector<std::int64_t>{0, 1'000'001});
    CHECK(ask(earlier + 500'000, rate, 0, 1, granted) == std::vector<std::int64_t>{0, 500'001});
    CHECK(ask(earlier + 1'000'001, rate, 0, 1, granted)[0] == 1);
}

TEST_CASE_FIXTURE(QueueFixture, "nothing is granted to a queue with nothing to fetch") {
    const auto ask = [&] {
        return redis
            .command({"EVAL", std::string(grant_script()), "3", "rate", "q", "suspects", "1000",
                      "0", "1"})
            .elements.at(0)
            .integer;
    };
    CHECK(ask() == -1);
    CHECK_FALSE(redis.exists("rate"));
    redis.command({"LPUSH", "suspects", "x"});
    CHECK(ask() == 1);
    CHECK(redis.exists("rate"));
}

TEST_CASE("a permit is good once, from its grant on for 50 ms, as far as two clocks tell") {
    orizuru::detail::Permits permits;
    const Clock::time_point at{1h};
    permits.add(at, at + 2ms);
    CHECK(permits.next(at) == at + 2ms);
    CHECK(permits.usable(at + 1ms) == 0);
    CHECK_FALSE(permits.use(at + 1ms));
    CHECK(permits.usable(at + 2ms) == 1);
    permits.promise(at + 2ms);
    CHECK(permits.usable(at + 2ms) == 0); // for another fetch
    CHECK_FALSE(permits.use(at + 51ms));
    CHECK(permits.use(at + 50ms));
    CHECK_FALSE(permits.use(at + 50ms));
    permits.add(at, at);
    permits.drop_void(at + 51ms);
    CHECK_FALSE(permits.use(at));
    CHECK(permits.next(at) == Clock::time_point::max());
}

/// The times at which jobs began.
class Begun {
  public:
    void add() const { m_times.add(Clock::now()); }
    [[nodiscard]] std::size_t count() const { return m_times.size(); }
    /// The first grant is behind `begin`, so each job has begun so many spacings behind it.
    [[nodiscard]] bool keeps_to(const Rate& rate, Clock::time_point begin) const {
        auto times = m_times.all();
        std::ranges::sort(times);
        auto earliest = begin - 1ms; // Redis has another clock
        return std::ranges::all_of(times, [&](Clock::time_point time) {
            const bool late_enough = time >= earliest;
            earliest += std::chrono::microseconds(grant_spacing(rate));
            return late_enough;
        });
    }

  private:
    Record<Clock::time_point> m_times;
};

Texts numbers(int count) {
    Texts all;
    for (int i = 0; i < count; ++i) {
        all.push_back(std::to_string(i));
    }
    return all;
}

TEST_CASE_FIXTURE(WorkerFixture, "all workers of a queue together begin its jobs by its rate, and "
                                 "each once") {
    const Rate rate{25, 250ms};
    push_jobs(numbers(60));
    const Begun begun;
    const auto handler = [&](const Raw& payload) {
        begun.add();
        handled.add(payload.bytes);
    };
    Worker one(uri, options(3));
    Worker two(uri, options(3));
    one.handle<Raw>("q", handler, {.rate = rate});
    two.handle<Raw>("q", handler, {.rate = {{.most = 25, .per = 250ms}}});
    const auto begin = Clock::now();
    const Running running_one(one);
    const Running running_two(two);
    CHECK(eventually([&] { return handled.size() >= 60; }));
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(handled.size() == 60);
    CHECK(begun.keeps_to(rate, begin));
}

TEST_CASE_FIXTURE(WorkerFixture, "jobs that end later keep to a rate as others do") {
    const Rate rate{20, 100ms};
    push_jobs(numbers(30));
    const Begun begun;
    Worker worker(uri, options(2));
    worker.handle<Raw>("q",
                       [&](const Raw&, JobDone done) {
                           begun.add();
                           done();
                       },
                       {.concurrency = 30, .rate = rate});
    const auto begin = Clock::now();
    const Running running(worker);
    CHECK(eventually([&] { return begun.count() == 30; }));
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(begun.keeps_to(rate, begin));
}

TEST_CASE_FIXTURE(WorkerFixture, "jobs wait for their turn in the queue, and a stop does not") {
    push_jobs({"a", "b", "c"});
    Worker worker(uri, options(4));
    worker.handle<Raw>("q", write_down(), {.rate = {{.most = 1, .per = 1h}}});
    Running running(worker);
    REQUIRE(has_handled({"a"}));
    CHECK(eventually([&] { return held_jobs().empty(); }));
    CHECK(jobs() == Texts{"b", "c"});
    const auto begin = Clock::now();
    CHECK(running.stop() == 0);
    CHECK(Clock::now() - begin < 20s);
    CHECK(jobs() == Texts{"b", "c"});
    CHECK(handled.all() == Texts{"a"});
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "who waits for a message asks for nothing, and what comes too soon "
                  "waits in the queue") {
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", write_down(), {.rate = {{.most = 1, .per = 1h}}});
    const Running running(worker);
    REQUIRE(so_many_wait(1));
    CHECK_FALSE(redis.exists("orizuru:{q}:rate"));
    push_jobs({"a"});
    CHECK(has_handled({"a"}));
    REQUIRE(so_many_wait(1)); // the queue is empty: nothing is granted for it
    push_jobs({"b"});
    CHECK(so_many_wait(0));
    CHECK(eventually([&] { return jobs() == Texts{"b"} && held_jobs().empty(); }));
    redis.command({"DEL", "orizuru:{q}:rate"}); // as if the hour were over
    CHECK(handled.all() == Texts{"a"});
}

TEST_CASE_FIXTURE(WorkerFixture, "a job that would begin too long behind its grant goes back") {
    std::atomic<bool> slow{true};
    std::atomic<int> fetched{0};
    WorkerOptions chosen = options(2);
    chosen.fetch_middleware.emplace_back([&](std::string_view, const std::function<bool()>& fetch) {
        const bool some = fetch();
        if (some && slow) {
            std::this_thread::sleep_for(70ms);
            ++fetched;
        }
        return some;
    });
    push_jobs({"a", "b"});
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", write_down(), {.rate = {{.most = 10, .per = 100ms}}});
    const Running running(worker);
    CHECK(eventually([&] { return fetched >= 4; }));
    CHECK(handled.all().empty());
    slow = false;
    CHECK(eventually([&] { return handled.size() == 2; }));
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(WorkerFixture, "other queues of a worker do not wait for a rate") {
    push_jobs({"a", "b"});
    push_jobs({"c", "d", "e"}, "other");
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", write_down(), {.rate = {{.most = 1, .per = 1h}}})
        .handle<Raw>("other", write_down());
    const Running running(worker);
    CHECK(has_handled({"a", "c", "d", "e"}));
    CHECK(jobs() == Texts{"b"});
}

TEST_CASE_FIXTURE(WorkerFixture, "a queue whose rate has a key of another type is served once that "
                                 "is mended") {
    redis.lpush("orizuru:{q}:rate", {"x"});
    push_jobs({"a"});
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down(), {.rate = {{.most = 1, .per = 1h}}});
    const Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::fetch_failed) > 0; }));
    CHECK(diary.of(WorkerEventKind::fetch_failed).front().detail.find("orizuru:{q}:rate") !=
          std::string::npos);
    CHECK(jobs() == Texts{"a"});
    redis.command({"DEL", "orizuru:{q}:rate"});
    CHECK(has_handled({"a"}));
}

TEST_CASE_FIXTURE(WorkerFixture, "a rate that cannot be kept is refused with the reason") {
    Worker worker(uri, options());
    const auto why = [&](const QueueOptions& chosen) -> std::string {
        try {
            worker.handle<Raw>("q", write_down(), chosen);
        } catch (const std::invalid_argument& refusal) {
            return refusal.what();
        }
        return "";
    };
    CHECK(why({.rate = {{.most = 0}}}) == "queue 'q': rate.most must be 1 to 1000000");
    CHECK(why({.rate = {{.per = 0s}}}) == "queue 'q': rate.per must be 1 ms to 24 h");
    CHECK(why({.prefetch = 2, .rate = Rate()})
              .starts_with("queue 'q': with a rate, prefetch must "
                           "be 1"));
    const QueueOptions limited{.rate = Rate()};
    CHECK_THROWS_WITH_AS(worker.handle_batch<Raw>(
                             "q", [](orizuru::JobBatch<Raw>) {}, {}, limited),
                         "queue 'q': handle_batch takes no rate", std::invalid_argument);
    orizuru::create_shards(uri, "wide", 2);
    CHECK_THROWS_AS(worker.handle_shards<Raw>("wide", write_down(), limited),
                    std::invalid_argument);
    CHECK(why(limited).empty());
}

} // namespace queue_rate_test
