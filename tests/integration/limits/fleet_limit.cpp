// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Worker::limit: how many handlers of a queue run at once, in all processes together.

#include "integration/worker/worker_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/detail/limits/admission_script.hpp>
#include <orizuru/detail/limits/rate_spacing.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/limit.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace fleet_limit_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::FleetLimit;
using orizuru::JobContext;
using orizuru::JobDone;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;

const std::string slots = "orizuru:{q}:slots";

Texts numbers(int count) {
    Texts all;
    for (int i = 0; i < count; ++i) {
        all.push_back(std::to_string(i));
    }
    return all;
}

/// Counts handlers that run at the same time.
class AtOnce {
  public:
    void run(std::chrono::milliseconds time) {
        const int now = ++m_now;
        int most = m_most;
        while (most < now && !m_most.compare_exchange_weak(most, now)) {
        }
        std::this_thread::sleep_for(time); // its work
        --m_now;
    }
    [[nodiscard]] int most() const { return m_most; }

  private:
    std::atomic<int> m_now{0};
    std::atomic<int> m_most{0};
};

struct LimitFixture : WorkerFixture {
    AtOnce at_once;

    std::int64_t taken() { return redis.command({"ZCARD", slots}).integer; }
    /// A handler that takes this time and records each payload.
    auto work_for(std::chrono::milliseconds time) {
        return [=, this](const Raw& payload) {
            at_once.run(time);
            handled.add(payload.bytes);
        };
    }
};

TEST_CASE_FIXTURE(LimitFixture, "no more handlers of a queue run at once, in all workers together, "
                                "than its limit says, and each job runs once") {
    push_jobs(numbers(200));
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::unique_ptr<Running>> running;
    for (int i = 0; i < 3; ++i) {
        Worker& worker = *workers.emplace_back(std::make_unique<Worker>(uri, options(4)));
        worker.handle<Raw>("q", work_for(2ms)).limit("q", {.concurrency = 3});
        running.push_back(std::make_unique<Running>(worker));
    }
    REQUIRE(eventually([&] { return handled.size() >= 200; }));
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(handled.size() == 200);
    CHECK(at_once.most() == 3);
    for (const auto& one : running) {
        CHECK(one->stop() == 0);
    }
    CHECK(taken() == 0);
}

TEST_CASE_FIXTURE(LimitFixture,
                  "jobs without a slot wait in the queue, and one runs as soon as one "
                  "is free, in a worker that has none") {
    const Gate gate;
    Worker one(uri, options(1));
    Worker other(uri, options(1));
    one.handle<Raw>("q", [&](const Raw&) { gate.pass(); });
    one.limit("q", {.concurrency = 1});
    other.handle<Raw>("q", write_down());
    other.limit("q", {.concurrency = 1});
    push_jobs({"a"});
    Running first(one);
    REQUIRE(gate.reached());
    push_jobs({"b"});
    const Running second(other);
    REQUIRE(so_many_wait(1)); // for a slot
    CHECK(jobs() == Texts{"b"});
    const auto state = orizuru::Inspector(uri).state("q");
    CHECK(state.slots_taken == 1);
    CHECK(state.waits_for == orizuru::LimitWait::slot);
    CHECK(taken() == 1);
    one.quiet();
    REQUIRE(eventually([&] { return diary.count(orizuru::WorkerEventKind::quieted) == 1; }));
    const auto begin = std::chrono::steady_clock::now();
    gate.open();
    CHECK(has_handled({"b"}));
    CHECK(std::chrono::steady_clock::now() - begin < 10s); // else it asks by itself
    CHECK(eventually([&] { return taken() == 0; }));
}

TEST_CASE_FIXTURE(LimitFixture, "a worker that has found the queue empty runs what comes next, and "
                                "keeps the limit") {
    Worker one(uri, options(2));
    Worker other(uri, options(2));
    one.handle<Raw>("q", work_for(5ms)).limit("q", {.concurrency = 1});
    other.handle<Raw>("q", work_for(5ms)).limit("q", {.concurrency = 1});
    const Running first(one);
    const Running second(other);
    REQUIRE(so_many_wait(2));
    const auto begin = std::chrono::steady_clock::now();
    for (int round = 0; round < 20; ++round) {
        push_jobs({std::to_string(round)});
        CHECK(eventually([&] { return handled.size() == static_cast<std::size_t>(round) + 1; }));
    }
    push_jobs(numbers(20));
    CHECK(eventually([&] { return handled.size() == 40 && nothing_left(); }));
    CHECK(std::chrono::steady_clock::now() - begin < 10s);
    CHECK(at_once.most() == 1);
}

TEST_CASE_FIXTURE(LimitFixture,
                  "who is busy with another queue leaves the next job of a limited one "
                  "to others") {
    const Gate gate;
    Worker busy(uri, options(1));
    Worker idle(uri, options(1));
    busy.handle<Raw>("q", write_down()).limit("q", {.concurrency = 1});
    busy.handle<Raw>("other", [&](const Raw&) { gate.pass(); });
    idle.handle<Raw>("q", write_down()).limit("q", {.concurrency = 1});
    const Running first(busy);
    REQUIRE(so_many_wait(2));
    const Running second(idle);
    REQUIRE(so_many_wait(3));
    push_jobs({"x"}, "other");
    REQUIRE(gate.reached());
    const auto begin = std::chrono::steady_clock::now();
    push_jobs({"a", "b", "c"});
    CHECK(eventually([&] { return handled.size() == 3; })); // one may have come to the busy one
    CHECK(std::chrono::steady_clock::now() - begin < 10s);
    gate.open();
}

TEST_CASE_FIXTURE(LimitFixture, "the slot of a process that was killed is free once its lease is "
                                "over, and its job runs again") {
    const auto life = [&] {
        Worker worker(uri, options(1));
        worker
            .handle<Raw>("q",
                         [&](const Raw&) {
                             RedisClient(uri).command({"SET", "runs", "1"});
                             std::this_thread::sleep_for(1h); // until it is killed
                         },
                         {.lease = 300ms})
            .limit("q", {.concurrency = 1});
        return worker.run();
    };
    push_jobs({"a", "b"});
    Child killed(life);
    REQUIRE(eventually([&] { return redis.exists("runs"); }));
    WorkerOptions collecting = options(2);
    collecting.collect_interval = 50ms;
    Worker worker(uri, collecting);
    worker.handle<Raw>("q", work_for(5ms), {.lease = 300ms}).limit("q", {.concurrency = 1});
    const Running running(worker);
    REQUIRE(eventually([&] { return taken() == 1; }));
    CHECK(handled.all().empty());
    killed.signal(SIGKILL);
    CHECK(eventually([&] { return handled.size() == 2; }));
    CHECK(at_once.most() == 1);
}

TEST_CASE_FIXTURE(LimitFixture, "batches and jobs in flight have a slot while they run, and acks "
                                "before or behind the handler make no difference") {
    Record<std::size_t> sizes;
    Worker worker(uri, options(4));
    worker
        .handle_batch<Raw>("q",
                           [&](orizuru::JobBatch<Raw> jobs) {
                               sizes.add(jobs.size());
                               at_once.run(2ms);
                           },
                           {.size = 5, .time = 20ms})
        .limit("q", {.concurrency = 2});
    AtOnce async;
    std::vector<std::jthread> threads;
    std::mutex starting;
    worker
        .handle<Raw>("flying",
                     [&](const Raw&, JobDone done) {
                         const std::lock_guard lock(starting);
                         threads.emplace_back([&async, done = std::move(done)]() mutable {
                             async.run(2ms);
                             done();
                         });
                     },
                     {.concurrency = 50})
        .limit("flying", {.concurrency = 3});
    AtOnce first;
    worker
        .handle<Raw>("once", [&](const Raw&) { first.run(1ms); },
                     {.guarantee = orizuru::Guarantee::at_most_once})
        .limit("once", {.concurrency = 2});
    push_jobs(numbers(43));
    push_jobs(numbers(40), "flying");
    push_jobs(numbers(40), "once");
    Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 43 + 40 + 40; }));
    CHECK(running.stop() == 0);
    CHECK(nothing_left());
    CHECK(at_once.most() <= 2);
    CHECK(sizes.size() >= 9);
    CHECK(async.most() == 3);
    CHECK(first.most() <= 2);
    CHECK(taken() == 0);
    CHECK(redis.command({"ZCARD", "orizuru:{flying}:slots"}).integer == 0);
}

TEST_CASE_FIXTURE(LimitFixture, "jobs with keys keep their order within a limit") {
    orizuru::KeyedJobProducer<Raw> producer(uri, "q");
    for (const std::string key : {"a", "b", "c", "d"}) {
        for (const char number : {'1', '2', '3', '4', '5'}) {
            producer.push(key, {key + number});
        }
    }
    Worker worker(uri, options(4));
    worker.handle_keyed<Raw>("q", work_for(1ms)).limit("q", {.concurrency = 2});
    const Running running(worker);
    CHECK(eventually([&] { return handled.size() == 20; }));
    CHECK(at_once.most() <= 2);
    Texts sorted = handled.all();
    std::ranges::stable_sort(sorted, {}, [](const std::string& text) { return text[0]; });
    CHECK(std::ranges::is_sorted(sorted));
}

TEST_CASE_FIXTURE(LimitFixture,
                  "slots lapse when nobody renews them, but not before Redis has taken "
                  "writes for the lease") {
    push_jobs({"a"});
    redis.command({"ZADD", slots, "1000", "60000 ghost:host:1:0123456789abcdef 1"});
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", write_down(), {.lease = 300ms}).limit("q", {.concurrency = 1});
    Running running(worker);
    REQUIRE(so_many_wait(1)); // for a slot
    redis.command({"LPUSH", "orizuru:{q}:slots:freed", "x"});
    REQUIRE(eventually([&] {
        return redis.command({"LLEN", "orizuru:{q}:slots:freed"}).integer == 0;
    }));
    REQUIRE(so_many_wait(1)); // writes have been taken for less than a minute
    CHECK(handled.all().empty());
    redis.command({"ZREM", slots, "60000 ghost:host:1:0123456789abcdef 1"});
    redis.command({"ZADD", slots, "1000", "200 ghost:host:1:0123456789abcdef 1"});
    CHECK(eventually([&] {
        redis.command({"LPUSH", "orizuru:{q}:slots:freed", "x"});
        return handled.size() == 1;
    }));
}

TEST_CASE_FIXTURE(LimitFixture, "a slot whose end lies too far ahead, since the clock of Redis was "
                                "set back, lapses a lease from now") {
    push_jobs({"a"});
    redis.command({"ZADD", slots, "9000000000000000", "200 ghost:host:1:0123456789abcdef 1"});
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", write_down(), {.lease = 300ms}).limit("q", {.concurrency = 1});
    const Running running(worker);
    CHECK(eventually([&] {
        redis.command({"LPUSH", "orizuru:{q}:slots:freed", "x"});
        return handled.size() == 1;
    }));
}

TEST_CASE_FIXTURE(LimitFixture,
                  "a handler whose slot Redis may have given away has no valid lease, "
                  "and no other begins meanwhile") {
    const Gate gate;
    std::atomic<bool> lapsed{false};
    Worker worker(uri, options(1));
    worker
        .handle<Raw>("q",
                     [&](JobContext<Raw>& job) {
                         gate.pass();
                         if (job->payload.bytes == "a") {
                             lapsed = eventually([&] { return !job.lease_valid(); });
                         }
                     },
                     {.lease = 300ms})
        .limit("q", {.concurrency = 1});
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(gate.reached());
    redis.command({"DEL", slots});
    redis.lpush(slots, {"x"}); // its renewals fail now, those of the message's lease do not
    gate.open();
    CHECK(eventually([&] { return lapsed.load(); }));
    CHECK(eventually([&] { return diary.count(WorkerEventKind::fetch_failed) > 0; }));
    CHECK(diary.of(WorkerEventKind::fetch_failed).front().detail.find(slots) != std::string::npos);
    redis.command({"DEL", slots});
    push_jobs({"b"});
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(LimitFixture, "a paused queue keeps no slot, and a stop waits for none") {
    Worker one(uri, options(1));
    one.handle<Raw>("q", write_down()).limit("q", {.concurrency = 1});
    Running running(one);
    REQUIRE(so_many_wait(1));
    redis.command({"SET", "orizuru:{q}:paused", "1"});
    REQUIRE(so_many_wait(0));
    push_jobs({"a"});
    redis.command({"ZADD", slots, "9000000000000000", "86400000 other:host:1:0123456789abcdef 1"});
    redis.command({"DEL", "orizuru:{q}:paused"});
    REQUIRE(so_many_wait(1)); // for a slot
    CHECK(jobs() == Texts{"a"});
    CHECK(running.stop() == 0);
    CHECK(jobs() == Texts{"a"});
    CHECK(taken() == 1);
}

/// The times at which jobs began.
class Begun {
  public:
    void add(const orizuru::JobRun& job) const { m_times.add(job.since()); }
    [[nodiscard]] std::size_t count() const { return m_times.size(); }
    /// A job begins at most 50 ms behind its permit: no span shorter by that has more than `most`.
    [[nodiscard]] bool keeps_to(const orizuru::Rate& rate) const {
        auto times = m_times.all();
        std::ranges::sort(times);
        for (std::size_t i = static_cast<std::size_t>(rate.most); i < times.size(); ++i) {
            if (times[i] - times[i - static_cast<std::size_t>(rate.most)] < rate.per - 50ms) {
                return false;
            }
        }
        return true;
    }

  private:
    Record<std::chrono::steady_clock::time_point> m_times;
};

TEST_CASE_FIXTURE(LimitFixture,
                  "all workers of a queue together begin its jobs by its rate, and each "
                  "once") {
    const orizuru::Rate rate{25, 250ms};
    push_jobs(numbers(80));
    const Begun begun;
    const auto handler = [&](JobContext<Raw>& job) {
        begun.add(job);
        handled.add(job->payload.bytes);
    };
    Worker one(uri, options(3));
    Worker other(uri, options(3));
    one.handle<Raw>("q", handler).limit("q", {.rate = rate});
    other.handle<Raw>("q", handler).limit("q", {.rate = rate});
    const Running first(one);
    const Running second(other);
    CHECK(eventually([&] { return handled.size() >= 80; }));
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(handled.size() == 80);
    CHECK(begun.keeps_to(rate));
    const std::string key = redis.command({"GET", "orizuru:{q}:rate"}).text;
    CHECK(key.find(' ') != std::string::npos);
}

TEST_CASE_FIXTURE(LimitFixture,
                  "workers with a backlog have what its rate allows, by what the script "
                  "reckons with given times") {
    const orizuru::Rate rate{250, 5s}; // its key expires a span later by Redis' own clock
    const auto spacing = orizuru::detail::RateSpacing::of(rate);
    std::string script(orizuru::detail::admission_text);
    const std::string clock = "time = redis.call('TIME')";
    script.replace(script.find(clock), clock.size(), "time = {ARGV[14], ARGV[15]}");
    push_jobs({"a"});
    const Texts keys{slots, "freed", "rate", "writes", "q", "suspects"};
    Texts asks{"EVAL", script, std::to_string(keys.size())};
    asks.insert(asks.end(), keys.begin(), keys.end());
    asks.insert(asks.end(), {"owner", "60000", "0", "0", "0", "0"}); // without slots
    for (const auto time : {spacing.apart, spacing.late, spacing.per}) {
        asks.push_back(std::to_string(time.count()));
    }
    asks.insert(asks.end(), {"4", "fetch"});
    struct Asking { // again when it is told to, and as soon as it has begun some
        std::int64_t at;
        std::string due = "0";
        int unused = 0;
    };
    std::vector<Asking> workers(3, {1'000'000});
    int grants = 0;
    int begun = 0;
    while (true) {
        Asking& worker = *std::ranges::min_element(workers, {}, &Asking::at);
        if (worker.at >= 11'000'000) {
            break;
        }
        Texts command = asks;
        command.insert(command.end(), {worker.due, std::to_string(std::exchange(worker.unused, 0)),
                                       std::to_string(worker.at / 1'000'000),
                                       std::to_string(worker.at % 1'000'000)});
        const Answer answer = redis.command(command);
        const auto granted = answer.elements.at(0).integer;
        const auto next = answer.elements.at(1).integer;
        if (granted > 0) {
            worker.due = std::to_string(next);
            worker.unused = ++grants % 10 == 0 ? 1 : 0; // it has found no job for it
            begun += static_cast<int>(granted) - worker.unused;
        }
        worker.at += granted > 0 ? 100 : 1000 * next + 100;
    }
    CHECK(begun >= 490); // the spacing gives 99 % here
    CHECK(begun <= 500);
}

TEST_CASE_FIXTURE(LimitFixture, "a worker with a backlog reaches its rate") {
    push_jobs(numbers(200));
    Worker worker(uri, options(3));
    worker.handle<Raw>("q", write_down()).limit("q", {.rate = {{25, 250ms}}});
    const Running running(worker);
    CHECK(holds_within(3s, [&] { return handled.size() == 200; })); // 2.1 s
}

TEST_CASE_FIXTURE(LimitFixture,
                  "jobs wait for a rate in the queue, other queues do not wait for it, "
                  "and a stop neither") {
    push_jobs({"a", "b", "c"});
    push_jobs({"x", "y", "z"}, "other");
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", write_down()).limit("q", {.rate = {{.most = 1, .per = 1h}}});
    worker.handle<Raw>("other", write_down());
    Running running(worker);
    CHECK(eventually([&] { return handled.size() == 4; }));
    CHECK(eventually([&] { return held_jobs().empty(); }));
    CHECK(jobs() == Texts{"b", "c"});
    CHECK(orizuru::Inspector(uri).state("q").waits_for == orizuru::LimitWait::permit);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(running.stop() == 0);
    CHECK(std::chrono::steady_clock::now() - begin < 10s);
    CHECK(jobs() == Texts{"b", "c"});
}

TEST_CASE_FIXTURE(LimitFixture,
                  "what a wait has brought too soon goes back, and runs when it is due") {
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", write_down()).limit("q", {.rate = {{.most = 1, .per = 1h}}});
    Running running(worker);
    REQUIRE(so_many_wait(1));
    CHECK_FALSE(redis.exists("orizuru:{q}:rate")); // nothing is taken for an empty queue
    push_jobs({"a"});
    CHECK(has_handled({"a"}));
    REQUIRE(so_many_wait(1));
    push_jobs({"b"});
    REQUIRE(so_many_wait(0));
    CHECK(eventually([&] { return jobs() == Texts{"b"} && held_jobs().empty(); }));
    redis.command({"DEL", "orizuru:{q}:rate"}); // as if the hour were over
    CHECK(running.stop() == 0);
    CHECK(handled.all() == Texts{"a"});
    Worker next(uri, options(2));
    next.handle<Raw>("q", write_down()).limit("q", {.rate = {{.most = 1, .per = 1h}}});
    const Running again(next);
    CHECK(has_handled({"a", "b"}));
}

TEST_CASE_FIXTURE(LimitFixture, "jobs that end before their handlers take nothing of a rate") {
    for (int i = 0; i < 50; ++i) {
        auto job = orizuru::make_job(Raw{"old"});
        job.expires_at = job.enqueued_at - 1h;
        redis.lpush("q", {bytes_of(job)});
    }
    push_jobs({"a"});
    Worker worker(uri, options(3));
    worker.handle<Raw>("q", write_down()).limit("q", {.rate = {{.most = 1, .per = 1h}}});
    const Running running(worker);
    CHECK(has_handled({"a"}));
}

TEST_CASE_FIXTURE(LimitFixture,
                  "a job that would begin too long behind its permit goes back, and its "
                  "permit, too") {
    std::atomic<bool> slow{true};
    std::atomic<int> fetched{0};
    WorkerOptions chosen = options(2);
    chosen.fetch_middleware.emplace_back([&](std::string_view, const std::function<bool()>& fetch) {
        const bool some = fetch();
        if (some && slow) {
            std::this_thread::sleep_for(70ms); // longer than a permit is good
            ++fetched;
        }
        return some;
    });
    push_jobs({"a"});
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", write_down()).limit("q", {.rate = {{.most = 1, .per = 1h}}});
    const Running running(worker);
    CHECK(eventually([&] { return fetched >= 3; }));
    CHECK(handled.all().empty());
    CHECK(diary.count(WorkerEventKind::requeued) > 0);
    slow = false;
    CHECK(has_handled({"a"}));
}

TEST_CASE_FIXTURE(LimitFixture, "a rate and a concurrency hold together, for jobs in flight, too") {
    const orizuru::Rate rate{20, 100ms};
    push_jobs(numbers(60));
    const Begun begun;
    std::vector<std::jthread> threads;
    std::mutex starting;
    Worker worker(uri, options(2));
    worker
        .handle<Raw>("q",
                     [&](JobContext<Raw>& job, JobDone end) {
                         begun.add(job);
                         const std::lock_guard lock(starting);
                         threads.emplace_back([&, end = std::move(end)]() mutable {
                             at_once.run(3ms);
                             end();
                         });
                     },
                     {.concurrency = 30})
        .limit("q", {.concurrency = 2, .rate = rate});
    Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 60; }));
    CHECK(running.stop() == 0);
    CHECK(begun.keeps_to(rate));
    CHECK(at_once.most() <= 2);
}

TEST_CASE_FIXTURE(LimitFixture, "a limit that cannot be kept is refused with the reason") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    worker.handle<Raw>("ahead", write_down(), {.prefetch = 2});
    worker.handle_batch<Raw>("batches", [](orizuru::JobBatch<Raw>) {}, {});
    const auto why = [&](const std::string& queue, const FleetLimit& limit) -> std::string {
        try {
            worker.limit(queue, limit);
        } catch (const std::invalid_argument& refusal) {
            return refusal.what();
        }
        return "";
    };
    CHECK(why("q", {}) == "queue 'q': a limit without concurrency and rate");
    CHECK(why("q", {.concurrency = 0}) ==
          "queue 'q': the concurrency of a limit must be 1 to 100000");
    CHECK(why("q", {.rate = {{.most = 0}}}) ==
          "queue 'q': the permits of a rate must be 1 to 1000000");
    CHECK(why("q", {.rate = {{.per = 0s}}}) ==
          "queue 'q': the span of a rate must be 1 ms to 24 h");
    CHECK(why("none", {.concurrency = 1}) == "queue 'none' has no handler that could be limited");
    CHECK(why("ahead", {.concurrency = 1})
              .starts_with("queue 'ahead': with a limit, prefetch must be 1"));
    CHECK(why("batches", {.rate = {{.most = 1}}}) == "queue 'batches': batches take no rate");
    CHECK(why("batches", {.concurrency = 1}).empty());
    CHECK(why("q", {.concurrency = 1, .rate = {{.most = 1}}}).empty());

    Worker late(uri, options());
    late.handle<Raw>("later", "kind", write_down()).limit("later", {.concurrency = 1});
    late.serve("later", {.prefetch = 100});
    CHECK_THROWS_AS(late.run(), std::invalid_argument);
}

} // namespace fleet_limit_test
