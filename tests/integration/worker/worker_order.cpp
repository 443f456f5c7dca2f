// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Which job a free thread of a worker gets, and which jobs are left to others.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/pause.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace worker_order_test {

using namespace std::chrono_literals;
using orizuru::JobBatch;
using orizuru::Pause;
using orizuru::QueueOrder;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::holds_within;
using orizuru::test::RedisClient;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Fixture : WorkerFixture {
    WorkerOptions in_order(QueueOrder order, int concurrency = 1) const {
        WorkerOptions chosen = options(concurrency);
        chosen.order = order;
        return chosen;
    }
    /// How many of the first 400 jobs of one thread come from the first of two queues, which have
    /// 400 each.
    std::ptrdiff_t first_ones(QueueOrder order, int weight) {
        push_jobs(Texts(400, "first"), "first");
        push_jobs(Texts(400, "second"), "second");
        Worker worker(uri, in_order(order));
        worker.handle<Raw>("first", write_down(), {.weight = weight})
            .handle<Raw>("second", write_down());
        const Running running(worker);
        REQUIRE(eventually([this] { return handled.size() == 800; }));
        const Texts all = handled.all();
        return std::count(all.begin(), all.begin() + 400, "first");
    }
    /// Connections besides the test's own, once a worker of 20 handled jobs is idle.
    std::size_t connections(int concurrency) {
        push_jobs(Texts(20, "a"));
        Worker worker(uri, options(concurrency));
        worker.handle<Raw>("q", write_down()).handle<Raw>("other", write_down());
        const Running running(worker);
        REQUIRE(eventually([&] { return worker.statistics().succeeded == 20; }));
        REQUIRE(so_many_wait(2));
        const std::string clients = redis.command({"CLIENT", "LIST"}).text;
        return static_cast<std::size_t>(std::ranges::count(clients, '\n')) - 1;
    }
};

TEST_CASE_FIXTURE(Fixture, "in strict order a queue is served when those before it are empty") {
    push_jobs({"c", "d"});
    push_jobs({"a", "b"}, "urgent");
    Worker worker(uri, options());
    worker.handle<Raw>("urgent", write_down()).handle<Raw>("q", write_down());
    const Running running(worker);
    CHECK(has_handled({"a", "b", "c", "d"}));
}

TEST_CASE_FIXTURE(Fixture, "an urgent job goes before all jobs that were there before it") {
    const Gate gate;
    push_jobs({"a", "b", "c"});
    Worker worker(uri, options());
    worker.handle<Raw>("urgent", write_down()).handle<Raw>("q", [=, this](const Raw& payload) {
        handled.add(payload.bytes);
        gate.pass();
    });
    const Running running(worker);
    REQUIRE(gate.reached());
    push_jobs({"x", "y"}, "urgent");
    gate.open();
    CHECK(has_handled({"a", "x", "y", "b", "c"}));
}

TEST_CASE_FIXTURE(Fixture, "a queue with three times the weight is three times as often first") {
    // 300 are expected; eight standard deviations are 70.
    const auto first = first_ones(QueueOrder::weighted, 3);
    CHECK(first > 230);
    CHECK(first < 370);
}

TEST_CASE_FIXTURE(Fixture, "in random order all queues are alike, whatever they weigh") {
    // 200 are expected; eight standard deviations are 80.
    const auto first = first_ones(QueueOrder::random, 100);
    CHECK(first > 120);
    CHECK(first < 280);
}

TEST_CASE_FIXTURE(Fixture, "nothing is fetched while no thread is free") {
    const Gate gate;
    const Texts queues{"q", "second", "third"};
    Worker worker(uri, options());
    for (const std::string& queue : queues) {
        worker.handle<Raw>(queue, [=](const Raw&) { gate.pass(); });
    }
    SUBCASE("full queues") {
        for (const std::string& queue : queues) {
            push_jobs({"a", "b", "c"}, queue);
        }
    }
    bool empty = false;
    SUBCASE("queues that were empty") { empty = true; }
    const Running running(worker);
    if (empty) {
        REQUIRE(so_many_wait(3));
        push_jobs({"a"}, "second");
    }
    REQUIRE(gate.reached());
    REQUIRE(so_many_wait(0)); // a waiter would get the next job
    const std::int64_t left = redis.llen("q") + redis.llen("second") + redis.llen("third");
    for (const std::string& queue : queues) {
        push_jobs({"d", "e"}, queue);
    }
    CHECK_FALSE(eventually([&] { return gate.arrived() > 1; }, 50ms));
    CHECK(redis.llen("q") + redis.llen("second") + redis.llen("third") == left + 6);
    CHECK(held_jobs("q").size() + held_jobs("second").size() + held_jobs("third").size() == 1);
    gate.open();
    CHECK(eventually([&] { return std::cmp_equal(gate.arrived(), left + 7); }));
}

TEST_CASE_FIXTURE(Fixture, "a job that Redis hands out too late for a free thread goes back") {
    const std::string push_and_be_busy = R"lua(
        redis.call('LPUSH', KEYS[1], ARGV[1])
        local function now()
            local time = redis.call('TIME')
            return time[1] * 1000 + time[2] / 1000
        end
        local begun = now()
        for _ = 1, 1000000 do
            if now() >= begun + 300 then break end
        end)lua";
    const Gate gate;
    RedisClient pusher(uri);
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", [&](const Raw&) {
        // The reply to the worker's BLMOVE waits for the script, the worker only 100 ms.
        pusher.command({"EVAL", push_and_be_busy, "1", "q", bytes_of(make_job(Raw{"late"}))});
        gate.pass();
    });
    const Running running(worker);
    REQUIRE(so_many_wait(2));
    push_jobs({"a"}, "other");
    REQUIRE(gate.reached());
    CHECK(eventually([this] { return jobs() == Texts{"late"}; }));
    CHECK(held_jobs().empty());
    gate.open();
    CHECK(eventually([this] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "a job that comes too late for the thread that asked for it goes back") {
    const Gate first;
    const Gate second;
    Worker worker(uri, in_order(QueueOrder::strict));
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", [=](const Raw& payload) {
        (payload.bytes == "a" ? first : second).pass();
    });
    push_jobs({"a"}, "other");
    const Running running(worker);
    REQUIRE(first.reached());
    REQUIRE(so_many_wait(0));
    push_jobs({"late"});
    push_jobs({"b"}, "other");
    // The thread asks for what `q` has for 100 ms, and then for what `other` has.
    redis.command({"CLIENT", "PAUSE", "150", "WRITE"});
    first.open();
    REQUIRE(second.reached());
    // On a slow machine the thread may get it in time.
    CHECK(eventually([this] { return jobs().size() + handled.size() == 1; }));
    CHECK(held_jobs().empty());
    second.open();
    CHECK(eventually([this] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "all jobs of an answer that comes too late go back") {
    const Gate gate;
    RedisClient pausing(uri);
    std::atomic<int> looks{0};
    std::atomic<bool> pushed{false};
    bool paused = false;
    WorkerOptions chosen = in_order(QueueOrder::strict, 3);
    chosen.recheck = 20ms;
    chosen.fetch_middleware = {[&](std::string_view, const std::function<bool()>& fetch) {
        ++looks;
        if (pushed && !std::exchange(paused, true)) {
            // All three threads are free for what `q` has; 100 ms later `other` is asked.
            pausing.command({"CLIENT", "PAUSE", "150", "WRITE"});
        }
        return pushed && fetch();
    }};
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", write_down()).handle<Raw>("other", [=](const Raw&) { gate.pass(); });
    const Running running(worker);
    REQUIRE(eventually([&] { return looks > 4; }));
    push_jobs({"1", "2", "3"});
    push_jobs({"a", "b", "c"}, "other");
    pushed = true;
    REQUIRE(gate.reached(3));
    // On a slow machine threads may get some in time.
    CHECK(
        eventually([this] { return jobs().size() + handled.size() == 3 && held_jobs().empty(); }));
    if (handled.size() == 0) {
        CHECK(jobs() == Texts{"1", "2", "3"});
    }
    gate.open();
    CHECK(eventually([this] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "a fetch takes no more jobs than threads are free") {
    const Gate brief;
    const Gate busy;
    Worker worker(uri, options(2));
    worker.handle<Raw>("q",
                       [=](const Raw& payload) { (payload.bytes == "b" ? brief : busy).pass(); });
    push_jobs({"a", "b", "c", "d"});
    const Running running(worker);
    REQUIRE(brief.reached());
    brief.open();
    REQUIRE(busy.reached(2));
    CHECK(jobs() == Texts{"d"});
    CHECK(held_jobs() == Texts{"a", "c"});
    busy.open();
    CHECK(eventually([this] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(
    Fixture, "when two queues bring jobs at once for one thread, one job goes back to its place") {
    const Gate gate;
    Worker worker(uri, options());
    const auto handler = [=, this](const Raw& payload) {
        gate.pass();
        handled.add(payload.bytes);
    };
    worker.handle<Raw>("q", handler).handle<Raw>("second", handler);
    const Running running(worker);
    REQUIRE(so_many_wait(2));
    // Two jobs for each queue, in one step: both waiters are served.
    push_jobs({"a", "b"}, "jobs");
    const Texts bytes = oldest_first("jobs");
    const std::string push_both = "for _, queue in ipairs(KEYS) do "
                                  "redis.call('LPUSH', queue, unpack(ARGV)) end";
    redis.command({"EVAL", push_both, "2", "q", "second", bytes[0], bytes[1]});
    REQUIRE(gate.reached());
    const auto held = [this] { return held_jobs("q").size() + held_jobs("second").size(); };
    CHECK(eventually([&] { return held() == 1; }));
    const bool first_runs = held_jobs("q").size() == 1;
    CHECK(oldest_first(first_runs ? "second" : "q") == bytes);
    CHECK(oldest_first(first_runs ? "q" : "second") == Texts{bytes[1]});
    CHECK(gate.arrived() == 1);
    gate.open();
    CHECK(eventually([&] { return handled.size() == 4; }));
    CHECK(eventually([&] { return held() == 0; }));
    CHECK(redis.llen("q") + redis.llen("second") == 0);
}

TEST_CASE_FIXTURE(Fixture, "more threads need no more connections") {
    // Three of the consumer, two of the scheduler, one each of the collector, the worker and, from
    // its first look on, the dead list.
    CHECK(connections(2) <= 8);
    redis.flushall();
    REQUIRE(eventually([this] {
        return std::ranges::count(redis.command({"CLIENT", "LIST"}).text, '\n') == 1;
    }));
    CHECK(connections(50) <= 8);
}

TEST_CASE_FIXTURE(Fixture, "all workers of a queue pause, and go on together") {
    Worker one(uri, options());
    Worker other(uri, options());
    for (Worker* const worker : {&one, &other}) {
        worker->handle<Raw>("q", write_down()).handle<Raw>("free", write_down());
    }
    Pause pause(uri, "q");
    SUBCASE("paused before they came") {
        pause.pause();
        push_jobs({"a", "b"});
    }
    SUBCASE("paused while they wait") {}
    const Running running(one);
    const Running running_too(other);
    if (!pause.paused()) {
        REQUIRE(so_many_wait(4));
        pause.pause();
        REQUIRE(so_many_wait(2)); // those of the other queue
        push_jobs({"a", "b"});
    }
    push_jobs({"x"}, "free");
    CHECK(eventually([this] { return handled.size() > 0; }));
    CHECK(handled.all() == Texts{"x"});
    REQUIRE(so_many_wait(2));
    CHECK(jobs() == Texts{"a", "b"});
    pause.resume();
    // Before the wait for the other queue's jobs ends by itself, 5 s after it began.
    CHECK(holds_within(4s, [this] { return handled.size() == 3; }));
    CHECK(eventually([this] { return nothing_left(); }));
    CHECK(so_many_wait(4));
}

TEST_CASE_FIXTURE(Fixture, "a quiet worker finishes its jobs and takes no more") {
    const Gate gate;
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", [=, this](const Raw& payload) {
        gate.pass();
        handled.add(payload.bytes);
    });
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    REQUIRE(so_many_wait(1));
    worker.quiet();
    REQUIRE(so_many_wait(0));
    push_jobs({"b"});
    gate.open();
    CHECK(has_handled({"a"}));
    CHECK(eventually([this] { return held_jobs().empty(); }));
    CHECK_FALSE(running.ended(50ms));
    CHECK(jobs() == Texts{"b"});
    CHECK(running.stop() == 0);
    CHECK(handled.all() == Texts{"a"});
    CHECK(jobs() == Texts{"b"});
}

TEST_CASE_FIXTURE(Fixture, "jobs that were fetched ahead are requeued when their queue is paused") {
    Worker worker(uri, options(1));
    Gate gate;
    worker.handle<Raw>("q",
                       [&](const Raw& job) {
                           gate.pass();
                           handled.add(job.bytes);
                       },
                       {.prefetch = 3});
    push_jobs({"1", "2", "3", "4", "5", "6", "7"});
    const Running running(worker);
    REQUIRE(
        eventually([this] { return jobs().size() == 1; })); // three at work or in hand, three ahead
    Pause pause(uri, "q");
    pause.pause();
    redis.command({"CONFIG", "RESETSTAT"});
    // A look that finds a request asks twice: at the third, the worker has acted on one look.
    REQUIRE(eventually([this] { return info("commandstats", "cmdstat_exists:calls") >= 3; }));
    gate.open();
    CHECK(eventually([this] { return jobs() == Texts{"4", "5", "6", "7"}; }));
    CHECK(has_handled({"1", "2", "3"}));
    pause.resume();
    CHECK(has_handled({"1", "2", "3", "4", "5", "6", "7"}));
    CHECK(eventually([this] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "many short jobs come through pauses and waits without a lost wake-up") {
    constexpr int count = 3'000;
    Worker worker(uri, options(4));
    worker.handle<Raw>("q", write_down()).handle<Raw>("second", write_down(), {.prefetch = 5});
    const Running running(worker);
    Pause pause(uri, "second");
    for (int i = 0; i < count; i += 10) {
        const Texts some(10, std::to_string(i));
        push_jobs(some, i % 20 == 0 ? "q" : "second");
        if (i % 500 == 0) {
            i % 1000 == 0 ? pause.pause() : pause.resume();
        }
        if (i % 200 == 0) {
            CHECK(eventually([&] { return redis.llen("q") == 0; }));
        }
    }
    pause.resume();
    CHECK(eventually([&] { return handled.size() == count; }));
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(eventually([&] { return worker.statistics().succeeded == count; }));
}

TEST_CASE_FIXTURE(Fixture, "an urgent job waits for one fetch of another queue at most, though the "
                           "batches there end in the middle of the next one") {
    Worker worker(uri, options());
    std::atomic<int> others{0};
    std::atomic<int> pushed{-1};
    std::atomic<int> before{-1};
    worker.handle<Raw>("urgent", [&](const Raw&) { before = others.load(); })
        .handle_batch<Raw>("others",
                           [&](const JobBatch<Raw>& batch) {
                               others += static_cast<int>(batch.size());
                               if (others > 500 && pushed < 0) { // on the worker's one thread
                                   push_jobs({"u"}, "urgent");
                                   pushed = others.load();
                               }
                           },
                           {.size = 97}, {.prefetch = 100});
    for (int i = 0; i < 30; ++i) {
        push_jobs(Texts(1000, "x"), "others");
    }
    const Running running(worker);
    REQUIRE(eventually([&] { return before >= 0; }));
    // Those of a fetch and of the one ahead of it, in batches.
    CHECK(before - pushed <= 3 * 97);
}

TEST_CASE_FIXTURE(Fixture, "workers that come and go in the middle of everything lose nothing") {
    Texts expected;
    for (int i = 0; i < 600; ++i) {
        expected.push_back(std::to_string(1000 + i));
    }
    push_jobs(expected);
    for (int round = 0; round < 60; ++round) {
        Worker worker(uri, options(4));
        worker.handle<Raw>("q", write_down(), {.prefetch = 1 + round % 3})
            .handle<Raw>("other", write_down());
        Running running(worker);
        std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 20)));
        worker.quiet();
        CHECK(running.stop() == 0);
        REQUIRE(nobody_left());
    }
    Texts all = handled.all();
    const Texts rest = jobs();
    all.insert(all.end(), rest.begin(), rest.end());
    std::ranges::sort(all);
    CHECK(all == expected);
    CHECK(held_jobs().empty());
}

} // namespace worker_order_test
