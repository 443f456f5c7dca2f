// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Coroutines as handlers of a worker, for the Asio that the including program calls `net`.

#pragma once

#include "integration/asio/context.hpp"
#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/testing/job_trial.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace coroutines_test {

using namespace std::chrono_literals;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::contains;
using orizuru::test::Context;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::Record;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

using Timer = net::steady_timer;

net::awaitable<void> pass(std::chrono::milliseconds time) {
    Timer timer(co_await net::this_coro::executor, time);
    co_await timer.async_wait(net::use_awaitable);
}

struct Fixture : WorkerFixture {
    Context context;
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};

    static QueueOptions any_number() {
        QueueOptions chosen = much_later();
        chosen.concurrency = 10'000;
        return chosen;
    }
    /// A coroutine that waits for longer than any test runs.
    [[nodiscard]] auto waiting() {
        return [this](const Raw&) -> net::awaitable<void> {
            const std::shared_ptr<void> end(nullptr, [this](void*) { ++ended; });
            ++begun;
            co_await pass(1h);
        };
    }
    [[nodiscard]] bool have_begun(int count) {
        return eventually([&] { return begun == count; });
    }
};

TEST_CASE_FIXTURE(Fixture,
                  "where all handlers are coroutines a few threads begin their jobs, however "
                  "many may run at once, and else there is a thread for each") {
    const auto threads = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    };
    WorkerOptions many = options(2);
    many.concurrency = 200;
    const auto before = threads();
    {
        Worker worker(uri, many);
        worker.handle<Raw>("q", orizuru::on(context.executor(), waiting()), any_number());
        for (int i = 0; i < 5; ++i) {
            redis.lpush("q", bytes_of(orizuru::make_job(Raw{"x"})));
        }
        Running running(worker);
        CHECK(have_begun(5));
        CHECK(threads() < before + 50);
        running.stop();
    }
    Worker worker(uri, many);
    worker.handle<Raw>("q", orizuru::on(context.executor(), waiting()), any_number())
        .handle<Raw>("r", [](const Raw&) {});
    Running running(worker);
    CHECK(eventually([&] { return threads() > before + 200; }));
    running.stop();
}

TEST_CASE_FIXTURE(Fixture, "a coroutine may take each list of arguments, and runs on its executor "
                           "alone, after other coroutines as well as before them") {
    Worker worker(uri, options(2));
    Record<std::thread::id> threads;
    const auto note = [&](const std::string& text) -> net::awaitable<void> {
        threads.add(std::this_thread::get_id());
        co_await pass(1ms);
        threads.add(std::this_thread::get_id());
        handled.add(text);
    };
    worker
        .handle<Raw>(
            "q", "1",
            orizuru::on(context.executor(),
                        [&](const Raw& raw) -> net::awaitable<void> { co_await note(raw.bytes); }))
        .handle<Raw>("q", "2",
                     orizuru::on(context.executor(),
                                 [&](const Raw& raw, JobContext<Raw>& job) -> net::awaitable<void> {
                                     co_await note(raw.bytes + job.kind());
                                 }))
        .handle<Raw>(
            "q", "3",
            orizuru::on(context.executor(),
                        [&](const Job<Raw>& job, JobContext<Raw>& run) -> net::awaitable<void> {
                            co_await note(job.payload.bytes + run.kind());
                        }))
        .handle<Raw>("q", "4",
                     orizuru::on(context.executor(),
                                 [&](JobContext<Raw>& job) -> net::awaitable<void> {
                                     co_await note(job->payload.bytes);
                                 }))
        .handle<Raw>(
            "q", "5",
            orizuru::on(context.executor(), [&](const Job<Raw>& job) -> net::awaitable<void> {
                co_await note(job.payload.bytes);
            }));
    for (const std::string kind : {"1", "2", "3", "4", "5"}) {
        auto job = orizuru::make_job(Raw{"of " + kind});
        job.kind = kind;
        redis.lpush("q", bytes_of(job));
    }
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 5; }));
    Texts all = handled.all();
    std::ranges::sort(all);
    CHECK(all == Texts{"of 1", "of 22", "of 33", "of 4", "of 5"});
    CHECK(eventually([&] { return nothing_left(); }));
    for (const std::thread::id thread : threads.all()) {
        CHECK(thread == context.thread());
    }
}

TEST_CASE_FIXTURE(Fixture, "thousands of coroutines wait at once in one thread") {
    constexpr int count = 3000;
    Worker worker(uri, options(1));
    std::atomic<int> most{0};
    std::atomic<bool> full{false};
    worker.handle<Raw>("q",
                       orizuru::on(context.executor(),
                                   [&](const Raw&) -> net::awaitable<void> {
                                       most = std::max(most.load(), ++begun - ended);
                                       full = full || begun == count;
                                       while (!full) {
                                           co_await pass(10ms);
                                       }
                                       ++ended;
                                   }),
                       any_number());
    push_jobs(Texts(count, "x"));
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == count; }));
    CHECK(most == count);
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "what a coroutine throws is a failed attempt") {
    Worker worker(uri, options());
    std::string payload = "later";
    SUBCASE("after it was suspended") {}
    SUBCASE("before it is suspended") { payload = "now"; }
    SUBCASE("before it is a coroutine") { payload = "sooner"; }
    worker.handle<Raw>("q",
                       orizuru::on(context.executor(),
                                   [](const Raw& raw) -> net::awaitable<void> {
                                       if (raw.bytes == "sooner") {
                                           throw std::runtime_error("declined");
                                       }
                                       return [](std::string when) -> net::awaitable<void> {
                                           if (when == "later") {
                                               co_await pass(1ms);
                                           }
                                           throw std::runtime_error("declined");
                                       }(raw.bytes);
                                   }),
                       any_number());
    push_jobs({payload});
    const Running running(worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(put_off().front().last_error == "declined");
    CHECK(put_off().front().attempt == 2);
}

TEST_CASE_FIXTURE(Fixture, "jobs that fail at the same time are put off together: one question for "
                           "their recoveries, and each of them once") {
    constexpr int count = 500;
    Worker worker(uri, options(1));
    std::atomic<bool> fail{false};
    worker.handle<Raw>("q",
                       orizuru::on(context.executor(),
                                   [&](const Raw& raw) -> net::awaitable<void> {
                                       ++begun;
                                       while (!fail) {
                                           co_await pass(5ms);
                                       }
                                       if (raw.bytes == "for good") {
                                           throw orizuru::DoNotRetry("spoilt");
                                       }
                                       if (raw.bytes == "no matter") {
                                           throw orizuru::Discard("declined");
                                       }
                                       throw std::runtime_error("declined");
                                   }),
                       any_number());
    Texts payloads(count, "again");
    payloads[7] = "for good";
    payloads[8] = "no matter";
    push_jobs(payloads);
    Running running(worker);
    REQUIRE(have_begun(count));
    redis.command({"CONFIG", "RESETSTAT"});
    fail = true;
    CHECK(eventually([&] { return put_off().size() == count - 2 && held_jobs().empty(); }));
    CHECK(redis.llen(dead) == 1);
    CHECK(runs_of("hmget") + runs_of("hget") < count / 10);
    CHECK(eventually([&] { return diary.count(WorkerEventKind::failed) == count - 2; }));
    CHECK(diary.count(WorkerEventKind::died) == 1);
    CHECK(diary.count(WorkerEventKind::discarded) == 1);
    running.stop();
    CHECK(worker.statistics().failed == count);
    for (const auto& job : put_off()) {
        CHECK(job.attempt == 2);
        CHECK(job.last_error == "declined");
    }
}

TEST_CASE_FIXTURE(Fixture, "what Redis refuses of failures that are settled together is repeated, "
                           "each alone") {
    Worker worker(uri, options(1));
    worker.handle<Raw>("q",
                       orizuru::on(context.executor(),
                                   [&](const Raw&) -> net::awaitable<void> {
                                       ++begun;
                                       while (begun < 20) {
                                           co_await pass(5ms);
                                       }
                                       throw std::runtime_error("declined");
                                   }),
                       any_number());
    redis.command({"SET", "orizuru:{q}:scheduled", "no set"});
    push_jobs(Texts(20, "x"));
    Running running(worker);
    CHECK(eventually([&] { return diary.count(WorkerEventKind::unsettled) >= 20; }));
    CHECK(held_jobs().size() == 20);
    redis.del("orizuru:{q}:scheduled");
    CHECK(eventually([&] { return put_off().size() == 20; }));
    CHECK(held_jobs().empty());
    running.stop();
}

TEST_CASE_FIXTURE(Fixture, "payloads in flight are bounded, and one that is larger than that comes "
                           "alone") {
    Worker worker(uri, options());
    QueueOptions chosen = any_number();
    chosen.max_bytes_in_flight = 300'000;
    std::atomic<std::int64_t> bytes{0};
    std::atomic<std::int64_t> most{0};
    worker.handle<Raw>("q",
                       orizuru::on(context.executor(),
                                   [&](const Raw& raw) -> net::awaitable<void> {
                                       const auto size =
                                           static_cast<std::int64_t>(raw.bytes.size());
                                       bytes += size;
                                       ++begun;
                                       most = std::max(most.load(), bytes.load());
                                       co_await pass(5ms);
                                       bytes -= size;
                                   }),
                       chosen);
    Texts payloads(40, std::string(50'000, 'x'));
    payloads.emplace_back(500'000, 'y');
    payloads.emplace_back(500'000, 'y');
    push_jobs(payloads);
    Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 42; }));
    CHECK(most >= 500'000);
    CHECK(most < 900'000); // one that is larger than was guessed
    running.stop();
}

TEST_CASE_FIXTURE(Fixture, "the progress of a job can be awaited, and what Redis refuses of it is "
                           "told") {
    Worker worker(uri, options());
    std::atomic<int> written{0};
    std::atomic<int> refused{0};
    worker.handle<Raw>(
        "q",
        orizuru::on(context.executor(),
                    [&](JobContext<Raw>& job) -> net::awaitable<void> {
                        const bool first = co_await orizuru::async_progress(job, 0.5, "half");
                        CHECK(std::this_thread::get_id() == context.thread());
                        CHECK(job.fraction() == 0.5);
                        const std::string key = "orizuru:{q}:progress:" + job.id();
                        CHECK(redis.command({"HGET", key, "note"}).text == "half");
                        redis.del(key);
                        redis.command({"SET", key, "no hash"});
                        const bool second = co_await orizuru::async_progress(job, 0.75);
                        CHECK_THROWS_AS(static_cast<void>(orizuru::async_progress(job, 2)),
                                        std::invalid_argument);
                        written += first ? 1 : 0;
                        refused += second ? 0 : 1;
                    }),
        any_number());
    push_jobs({"x"});
    Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(written == 1);
    CHECK(refused == 1);
    CHECK(diary.count(WorkerEventKind::progress_failed) == 1);
    running.stop();
}

TEST_CASE("progress that is awaited while Redis is away fails once for all who wait") {
    orizuru::test::RedisServer own;
    orizuru::test::RedisClient redis(own.uri());
    Context context;
    std::atomic<int> begun{0};
    std::atomic<int> unwritten{0};
    std::atomic<bool> away{false};
    WorkerOptions options{.signal_handling = orizuru::SignalHandling::none,
                          .on_event = [](const auto&) {}};
    Worker worker(own.uri() + "?command_timeout=300&connect_timeout=300", options);
    worker.handle<Raw>("q",
                       orizuru::on(context.executor(),
                                   [&](JobContext<Raw>& job) -> net::awaitable<void> {
                                       ++begun;
                                       while (!away) {
                                           co_await pass(5ms);
                                       }
                                       const bool written =
                                           co_await orizuru::async_progress(job, 0.5);
                                       unwritten += written ? 0 : 1;
                                       co_await pass(1h);
                                   }),
                       {.concurrency = 1000});
    for (int i = 0; i < 200; ++i) {
        redis.lpush("q", WorkerFixture::bytes_of(orizuru::make_job(Raw{"x"})));
    }
    Running running(worker);
    REQUIRE(eventually([&] { return begun == 200; }));
    own.pause();
    away = true;
    CHECK(eventually([&] { return unwritten == 200; })); // 60 s if each waited by itself
    own.resume();
    running.stop();
}

TEST_CASE_FIXTURE(Fixture, "a loop that stands still is told once, and that it goes on") {
    Worker worker(uri, options());
    std::atomic<bool> blocks{true};
    worker.handle<Raw>("q",
                       orizuru::on(context.executor(),
                                   [&](const Raw&) -> net::awaitable<void> {
                                       ++begun;
                                       while (blocks) { // as one that calls what blocks
                                           std::this_thread::sleep_for(1ms);
                                       }
                                       co_return;
                                   }),
                       any_number());
    push_jobs({"x"});
    Running running(worker);
    REQUIRE(have_begun(1));
    CHECK(eventually([&] { return diary.count(WorkerEventKind::loop_blocked) == 1; }));
    CHECK(diary.count(WorkerEventKind::loop_unblocked) == 0);
    blocks = false;
    CHECK(eventually([&] { return diary.count(WorkerEventKind::loop_unblocked) == 1; }));
    CHECK(diary.count(WorkerEventKind::loop_blocked) == 1);
    CHECK(
        contains(diary.of(WorkerEventKind::loop_blocked).front().detail, "has run nothing for 1"));
    CHECK(eventually([&] { return nothing_left(); }));
    running.stop();
}

TEST_CASE_FIXTURE(Fixture, "a stop cancels coroutines, which are requeued, each in one piece") {
    Worker worker(uri, options(2));
    worker.handle<Raw>("q", orizuru::on(context.executor(), waiting()), any_number());
    push_jobs(Texts(500, "x"));
    Running running(worker);
    REQUIRE(have_begun(500));
    CHECK(running.stop() == 0);
    CHECK(ended == 500);
    CHECK(jobs() == Texts(500, "x"));
    for (const std::string& bytes : oldest_first("q")) {
        CHECK(job_of(bytes).attempt == 1);
    }
    CHECK(held_jobs().empty());
    CHECK(worker.statistics().requeued == 500);
}

TEST_CASE_FIXTURE(Fixture, "a coroutine that is cancelled may still end its job") {
    Worker worker(uri, options());
    worker.handle<Raw>("q",
                       orizuru::on(context.executor(),
                                   [this](const Raw&) -> net::awaitable<void> {
                                       ++begun;
                                       try {
                                           co_await pass(1h);
                                       } catch (const std::exception&) { // cancelled
                                           ++ended;
                                       }
                                   }),
                       any_number());
    push_jobs({"x"});
    Running running(worker);
    REQUIRE(have_begun(1));
    CHECK(running.stop() == 0);
    CHECK(ended == 1);
    CHECK(worker.statistics().succeeded == 1);
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(Fixture, "a time limit cancels a coroutine, whose attempt has failed") {
    Worker worker(uri, options());
    QueueOptions chosen = any_number();
    chosen.time_limit = 20ms;
    worker.handle<Raw>("q", orizuru::on(context.executor(), waiting()), chosen);
    push_jobs({"x"});
    const Running running(worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(ended == 1);
    CHECK(contains(put_off().front().last_error, "the time limit of 20 ms is over"));
}

TEST_CASE_FIXTURE(Fixture, "jobs of a context that does nothing are requeued by a stop") {
    WorkerOptions chosen = options(2);
    chosen.stop_timeout = 50ms;
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", orizuru::on(context.executor(), waiting()), any_number());
    SUBCASE("it has begun them") {
        push_jobs(Texts(100, "x"));
        Running running(worker);
        REQUIRE(have_begun(100));
        context.stop();
        CHECK(running.stop() == 0);
    }
    SUBCASE("it has not begun them") {
        context.stop();
        push_jobs(Texts(100, "x"));
        Running running(worker);
        REQUIRE(eventually([&] { return worker.running().size() == 100; }));
        CHECK(running.stop() == 0);
        CHECK(begun == 0);
    }
    CHECK(jobs() == Texts(100, "x"));
    CHECK(held_jobs().empty());
    context.end();
    CHECK(ended == begun);
    CHECK(jobs() == Texts(100, "x"));
}

TEST_CASE_FIXTURE(Fixture,
                  "a context that is destroyed gives its jobs back, and what comes then fails "
                  "for that reason") {
    bool all_begun = true;
    net::any_io_executor executor = context.executor();
    SUBCASE("its coroutines have begun") {}
    SUBCASE("one has not begun") { all_begun = false; }
    SUBCASE("they are on a strand") {
        all_begun = false;
        executor = net::make_strand(executor);
    }
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", orizuru::on(std::exchange(executor, {}), waiting()), any_number());
    push_jobs({"x", "y"});
    const Running running(worker);
    REQUIRE(have_begun(2));
    if (!all_begun) {
        context.stop();
        push_jobs({"z"});
        REQUIRE(eventually([&] { return worker.running().size() == 3; }));
        REQUIRE(so_many_wait(1)); // its thread has given it to the context
    }
    const std::size_t count = worker.running().size();
    context.end();
    CHECK(eventually([&] { return put_off().size() == count; }));
    CHECK(jobs().empty());
    CHECK(held_jobs().empty());
    for (const Job<Raw>& job : put_off()) {
        CHECK(job.attempt == 2); // those that were given back had none counted
        CHECK(job.last_error == "the context of its executor is gone");
    }
    CHECK(ended == 2);
    // It is counted behind the step at Redis, by another thread than the one that takes it again.
    CHECK(eventually([&] { return worker.statistics().requeued == count; }));
}

TEST_CASE_FIXTURE(Fixture, "several executors get the jobs in turns") {
    const Context other;
    Record<std::thread::id> threads;
    Worker worker(uri, options());
    worker.handle<Raw>("q",
                       orizuru::on({context.executor(), other.executor()},
                                   [&](const Raw&) -> net::awaitable<void> {
                                       threads.add(std::this_thread::get_id());
                                       co_return;
                                   }),
                       any_number());
    push_jobs(Texts(10, "x"));
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 10; }));
    const auto all = threads.all();
    CHECK(std::ranges::count(all, context.thread()) == 5);
    CHECK(std::ranges::count(all, other.thread()) == 5);
    CHECK(message_of<std::invalid_argument>([&] {
              static_cast<void>(
                  orizuru::on({}, [](const Raw&) -> net::awaitable<void> { co_return; }));
          }) == "a coroutine needs an executor");
}

TEST_CASE_FIXTURE(Fixture,
                  "a strand of a pool runs each of its coroutines on one thread at a time") {
    net::thread_pool pool(4);
    std::atomic<int> at_once{0};
    std::atomic<int> most{0};
    {
        Worker worker(uri, options());
        worker.handle<Raw>("q",
                           orizuru::on(net::make_strand(pool),
                                       [&](const Raw&) -> net::awaitable<void> {
                                           most = std::max(most.load(), ++at_once);
                                           --at_once;
                                           co_await pass(1ms);
                                       }),
                           any_number());
        push_jobs(Texts(200, "x"));
        const Running running(worker);
        CHECK(eventually([&] { return worker.statistics().succeeded == 200; }));
    }
    CHECK(most == 1);
    pool.join();
}

TEST_CASE_FIXTURE(Fixture, "a coroutine on trial ends as in a worker, without Redis") {
    using orizuru::testing::JobTrial;
    using orizuru::testing::Outcome;
    const auto handler =
        orizuru::on(context.executor(), [&](JobContext<Raw>& job) -> net::awaitable<void> {
            co_await pass(1ms);
            CHECK(std::this_thread::get_id() == context.thread());
            if (job->payload.bytes == "bad") {
                throw std::runtime_error("bad");
            }
        });
    CHECK(JobTrial<Raw>(Raw{"good"}).run(handler) == Outcome::acked);
    JobTrial<Raw> bad(Raw{"bad"});
    CHECK(bad.run(handler) == Outcome::retried);
    CHECK(bad.reason() == "bad");
}

} // namespace coroutines_test
