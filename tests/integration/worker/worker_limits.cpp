// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// How many jobs of a queue run at once, and how long a handler may run.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_batch.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace worker_limits_test {

using namespace std::chrono_literals;
using orizuru::JobContext;
using orizuru::JobProducer;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Fixture : WorkerFixture {
    /// Waits in the handler until its token has a stop requested.
    static void wait_for_stop(const std::stop_token& token) {
        CHECK(eventually([&] { return token.stop_requested(); }));
    }
};

TEST_CASE_FIXTURE(Fixture, "a queue with a concurrency of 1 keeps its order, beside one without") {
    QueueOptions of_queue{.concurrency = 1};
    SUBCASE("one by one") {}
    SUBCASE("fetched ahead") { of_queue.prefetch = 10; }
    Texts expected;
    for (int i = 0; i < 60; ++i) {
        expected.push_back(std::to_string(i));
    }
    push_jobs(expected);
    push_jobs(Texts(60, "x"), "others");
    std::atomic<int> here{0};
    std::atomic<int> most_here{0};
    std::atomic<int> others{0};
    std::atomic<int> most_others{0};
    const auto count = [](std::atomic<int>& now, std::atomic<int>& most) {
        most = std::max(most.load(), ++now);
        std::this_thread::sleep_for(2ms);
        --now;
    };
    Worker worker(uri, options(4));
    worker
        .handle<Raw>(
            "q",
            [&, record = handled](const Raw& payload) {
                record.add(payload.bytes);
                count(here, most_here);
            },
            of_queue)
        .handle<Raw>("others", [&](const Raw&) { count(others, most_others); });
    const Running running(worker);
    CHECK(has_handled(expected));
    CHECK(most_here == 1);
    CHECK(eventually([&] { return redis.llen("others") == 0; }));
    CHECK(most_others > 1);
    push_jobs({"one more"}); // after a time in which it was empty
    CHECK(eventually([&] { return handled.all().back() == "one more"; }));
}

TEST_CASE_FIXTURE(Fixture, "while as many jobs of a queue run as may, the next ones stay in Redis "
                           "for other workers") {
    const Gate gate;
    Worker busy(uri, options(4));
    SUBCASE("one by one") {
        busy.handle<Raw>("q", [gate](const Raw&) { gate.pass(); }, {.concurrency = 2});
    }
    SUBCASE("in batches by size") {
        busy.handle_batch<Raw>("q", [gate](const orizuru::JobBatch<Raw>&) { gate.pass(); },
                               {.size = 1, .time = 1h}, {.concurrency = 2});
    }
    SUBCASE("in batches by time") {
        busy.handle_batch<Raw>("q", [gate](const orizuru::JobBatch<Raw>&) { gate.pass(); },
                               {.size = 9, .time = 20ms}, {.concurrency = 2});
    }
    Running running(busy);
    push_jobs({"1"});
    REQUIRE(gate.reached(1));
    push_jobs({"2"});
    REQUIRE(gate.reached(2));
    push_jobs({"3", "4"});
    CHECK(jobs() == Texts{"3", "4"});
    {
        Worker other(uri, options());
        other.handle<Raw>("q", write_down());
        const Running running_other(other);
        CHECK(has_handled({"3", "4"}));
    }
    CHECK(gate.arrived() == 2);
    push_jobs({"5"});
    gate.open(); // which frees the places
    CHECK(gate.reached(3));
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(running.stop() == 0);
}

TEST_CASE_FIXTURE(Fixture, "a handler is asked to stop when its time is over, and its run has "
                           "failed however it ends") {
    QueueOptions of_queue = much_later();
    of_queue.time_limit = 30ms;
    Worker worker(uri, options());
    std::string reason = "the time limit of 30 ms is over";
    SUBCASE("by a return") {
        worker.handle<Raw>(
            "q", [](JobContext<Raw>& job) { wait_for_stop(job.stop_token()); }, of_queue);
    }
    SUBCASE("by an exception") {
        reason += ": interrupted";
        worker.handle<Raw>(
            "q",
            [](JobContext<Raw>& job) {
                wait_for_stop(job.stop_token());
                throw std::runtime_error("interrupted");
            },
            of_queue);
    }
    SUBCASE("in a batch") {
        worker.handle_batch<Raw>(
            "q", [](const orizuru::JobBatch<Raw>& jobs) { wait_for_stop(jobs[0].stop_token()); },
            {.size = 1}, of_queue);
    }
    SUBCASE("of a kind with a limit of its own") {
        of_queue.time_limit = 1h;
        worker.serve("q", of_queue)
            .handle<Raw>("q", "k", [](JobContext<Raw>& job) { wait_for_stop(job.stop_token()); },
                         {.time_limit = 30ms});
    }
    orizuru::Job<Raw> job = orizuru::make_job(Raw{"a"});
    if (of_queue.time_limit == 1h) {
        job.kind = "k";
    }
    redis.lpush("q", bytes_of(job));
    Running running(worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(put_off().front().last_error == reason);
    CHECK(put_off().front().attempt == 2);
    CHECK(running.stop() == 0);
    CHECK(diary.of(WorkerEventKind::failed).front().detail == reason);
    CHECK(worker.statistics().failed == 1);
    CHECK(worker.statistics().succeeded == 0);
}

TEST_CASE_FIXTURE(Fixture, "a limit that is over behind the end of its run stops nothing") {
    constexpr auto limit = 30ms;
    QueueOptions of_queue;
    of_queue.time_limit = limit;
    of_queue.retry = {.max_attempts = 1, .exhausted = orizuru::Exhausted::discard};
    Worker worker(uri, options());
    std::mutex mutex;
    std::stop_token stop;
    std::chrono::steady_clock::time_point since;
    worker.handle<Raw>(
        "q",
        [&](const Raw&, JobContext<Raw>& job) {
            const std::lock_guard lock(mutex);
            stop = job.stop_token();
            since = job.since();
        },
        of_queue);
    const Running running(worker);
    // On a busy machine one may outrun it.
    REQUIRE(eventually([&] {
        const auto ended = [&] {
            return worker.statistics().succeeded + diary.count(WorkerEventKind::discarded);
        };
        const auto before = ended();
        push_jobs({"a"});
        return eventually([&] { return ended() > before; }) && worker.statistics().succeeded > 0;
    }));
    const std::lock_guard lock(mutex);
    REQUIRE(eventually([&] { return std::chrono::steady_clock::now() > since + 2 * limit; }));
    CHECK_FALSE(stop.stop_requested());
}

TEST_CASE_FIXTURE(Fixture,
                  "a handler that settles its job itself, or says that nobody needs it, is "
                  "not affected by its limit") {
    Worker worker(uri, options(2));
    worker.serve("q", much_later())
        .handle<Raw>("q", "settles",
                     [](const Raw&, JobContext<Raw>& job) {
                         wait_for_stop(job.stop_token());
                         job.guard()->ack();
                     },
                     {.time_limit = 30ms})
        .handle<Raw>("q", "discards",
                     [](const Raw&, JobContext<Raw>& job) {
                         wait_for_stop(job.stop_token());
                         throw orizuru::Discard("too late");
                     },
                     {.time_limit = 30ms});
    for (const std::string kind : {"settles", "discards"}) {
        JobProducer<Raw>(uri, "q", {.kind = kind}).push({"a"});
    }
    const Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::discarded) == 1; }));
    CHECK(diary.of(WorkerEventKind::discarded).front().detail ==
          "the time limit of 30 ms is over: too late");
    CHECK(eventually([&] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "each limit is that of its own run, whatever the order in which they "
                           "end") {
    Worker worker(uri, options(3));
    std::atomic<bool> free_to_end{false};
    const auto limited = [&](std::chrono::milliseconds limit) {
        return [&, limit](JobContext<Raw>& job) {
            wait_for_stop(job.stop_token());
            CHECK(std::chrono::steady_clock::now() - job.since() >= limit);
            handled.add(job.kind());
            CHECK(eventually([&] { return free_to_end.load(); }));
        };
    };
    const Gate gate;
    worker.serve("q", much_later())
        .handle<Raw>("q", "long",
                     [=](JobContext<Raw>& job) {
                         gate.pass();
                         CHECK_FALSE(job.stop_token().stop_requested());
                     },
                     {.time_limit = 1h})
        .handle<Raw>("q", "short", limited(20ms), {.time_limit = 20ms})
        .handle<Raw>("q", "middle", limited(100ms), {.time_limit = 100ms});
    const auto push = [&](const std::string& kind) {
        JobProducer<Raw>(uri, "q", {.kind = kind}).push({"a"});
    };
    const Running running(worker);
    push("long");
    REQUIRE(gate.reached());
    push("middle");
    push("short");
    REQUIRE(eventually([&] { return handled.size() == 2; })); // both, for each is held
    gate.open();
    free_to_end = true;
    CHECK(eventually([&] { return put_off().size() == 2; }));
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
}

TEST_CASE_FIXTURE(Fixture, "a shutdown asks a handler with a time limit to stop, too, and that is "
                           "no failure") {
    Worker worker(uri, options());
    const Gate gate;
    worker.handle<Raw>("q",
                       [gate](JobContext<Raw>& job) {
                           gate.pass();
                           wait_for_stop(job.stop_token());
                           throw std::runtime_error("interrupted");
                       },
                       {.time_limit = 1h});
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    gate.open();
    CHECK(running.stop() == 0);
    CHECK(worker.statistics().requeued == 1);
    CHECK(worker.statistics().failed == 0);
    CHECK(jobs() == Texts{"a"});
    CHECK(job_of(waiting().front()).attempt == 1);
}

TEST_CASE_FIXTURE(Fixture, "a limit that passes while the worker shuts down fails the run, too, "
                           "however it ends") {
    constexpr std::chrono::milliseconds limit = 300ms;
    QueueOptions of_queue = much_later();
    of_queue.time_limit = limit;
    const Gate gate;
    const auto outrun = [=](const JobContext<Raw>& job) {
        // Not job.since(): an ack before the handler takes time of its own.
        const auto begun = std::chrono::steady_clock::now();
        gate.pass();
        wait_for_stop(job.stop_token()); // by the shutdown
        CHECK(eventually([&] { return std::chrono::steady_clock::now() > begun + limit; }));
    };
    Worker worker(uri, options());
    WorkerEventKind end = WorkerEventKind::failed;
    std::string reason = "the time limit of 300 ms is over";
    SUBCASE("by a return") { worker.handle<Raw>("q", outrun, of_queue); }
    SUBCASE("by an exception") {
        reason += ": interrupted";
        worker.handle<Raw>(
            "q",
            [=](JobContext<Raw>& job) {
                outrun(job);
                throw std::runtime_error("interrupted");
            },
            of_queue);
    }
    SUBCASE("in a batch") {
        worker.handle_batch<Raw>(
            "q", [=](const orizuru::JobBatch<Raw>& jobs) { outrun(jobs[0]); }, {.size = 1},
            of_queue);
    }
    SUBCASE("of a kind with a limit of its own") {
        of_queue.time_limit = 1h;
        worker.serve("q", of_queue).handle<Raw>("q", "k", outrun, {.time_limit = limit});
    }
    SUBCASE("acked before its handler") {
        of_queue.guarantee = orizuru::Guarantee::at_most_once;
        end = WorkerEventKind::discarded;
        worker.handle<Raw>("q", outrun, of_queue);
    }
    SUBCASE("in a batch acked before its handler") {
        of_queue.guarantee = orizuru::Guarantee::at_most_once;
        end = WorkerEventKind::discarded;
        worker.handle_batch<Raw>(
            "q", [=](const orizuru::JobBatch<Raw>& jobs) { outrun(jobs[0]); }, {.size = 1},
            of_queue);
    }
    orizuru::Job<Raw> job = orizuru::make_job(Raw{"a"});
    if (of_queue.time_limit == 1h) {
        job.kind = "k";
    }
    redis.lpush("q", bytes_of(job));
    Running running(worker);
    REQUIRE(gate.reached());
    worker.stop();
    gate.open();
    CHECK(running.stop() == 0);
    REQUIRE(diary.count(end) == 1);
    CHECK(diary.of(end).front().detail == reason);
    CHECK(put_off().size() == (end == WorkerEventKind::failed ? 1 : 0));
    CHECK(waiting().empty());
    CHECK(worker.statistics().succeeded == 0);
}

TEST_CASE_FIXTURE(Fixture, "a run that outruns its limit has failed, although a stop callback of "
                           "another handler keeps the worker from telling it") {
    const Gate callback;
    Worker worker(uri, options(2));
    QueueOptions of_queue = much_later();
    of_queue.time_limit = 20ms;
    worker.handle<Raw>(
        "q",
        [&](const Raw& payload, JobContext<Raw>& job) {
            if (payload.bytes == "calls back") {
                const std::stop_callback calling(job.stop_token(), [=] { callback.pass(); });
                CHECK(callback.reached());
                return;
            }
            CHECK(
                eventually([&] { return std::chrono::steady_clock::now() > job.since() + 20ms; }));
        },
        of_queue);
    push_jobs({"calls back"});
    const Running running(worker);
    REQUIRE(callback.reached());
    push_jobs({"outruns"});
    CHECK(eventually([&] { return worker.statistics().failed == 1; }));
    CHECK(worker.statistics().succeeded == 0);
    callback.open();
    CHECK(eventually([&] { return put_off().size() == 2; }));
}

TEST_CASE_FIXTURE(Fixture, "a limit asks its handler to stop while another handler's stop callback "
                           "holds up the shutdown") {
    const Gate limited;
    const Gate calling_back;
    const Gate callback;
    limited.open();
    calling_back.open();
    Worker worker(uri, options(2));
    worker
        .handle<Raw>("q",
                     [=](JobContext<Raw>& job) {
                         limited.pass();
                         wait_for_stop(job.stop_token());
                         callback.open();
                     },
                     {.retry = much_later().retry, .time_limit = 300ms})
        .handle<Raw>("others", [=](JobContext<Raw>& job) {
            const std::stop_callback calling(job.stop_token(), [=] { callback.pass(); });
            calling_back.pass();
            wait_for_stop(job.stop_token());
        });
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(limited.reached());
    push_jobs({"b"}, "others"); // the last callback of a stop source is the first to be called
    REQUIRE(calling_back.reached());
    CHECK(running.stop() == 0);
}

TEST_CASE_FIXTURE(Fixture, "behind a handler with a time limit, a middleware hears of a shutdown "
                           "and not of the limit") {
    const Gate gate;
    orizuru::WorkerOptions around = options();
    around.handle_middleware = {[gate](orizuru::JobRun& job, const std::function<void()>& next) {
        const std::stop_token before = job.stop_token();
        next();
        CHECK_FALSE(before.stop_requested());
        CHECK_FALSE(job.stop_token().stop_requested());
        gate.pass();
        wait_for_stop(before);
        wait_for_stop(job.stop_token());
    }};
    Worker worker(uri, around);
    QueueOptions of_queue = much_later();
    std::size_t failed = 0;
    const auto wait = [](JobContext<Raw>& job) { wait_for_stop(job.stop_token()); };
    SUBCASE("that was too slow") {
        of_queue.time_limit = 20ms;
        failed = 1;
        worker.handle<Raw>("q", wait, of_queue);
    }
    SUBCASE("that was in time") {
        of_queue.time_limit = 1h;
        worker.handle<Raw>(
            "q", [](const Raw&) {}, of_queue);
    }
    SUBCASE("of batches") {
        of_queue.time_limit = 20ms;
        failed = 1;
        worker.handle_batch<Raw>(
            "q", [&](const orizuru::JobBatch<Raw>& jobs) { wait(jobs[0]); }, {.size = 1}, of_queue);
    }
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    worker.stop();
    gate.open();
    CHECK(running.stop() == 0);
    CHECK(worker.statistics().failed == failed);
    CHECK(put_off().size() == failed);
}

// For ThreadSanitizer: each call of the handler has a token of its own.
TEST_CASE_FIXTURE(Fixture, "a middleware's thread asks for the token while handlers begin and end, "
                           "and sees each limit") {
    std::atomic<int> seen{0};
    std::atomic<int> calls{0};
    orizuru::WorkerOptions around = options();
    around.handle_middleware = {[&](orizuru::JobRun& job, const std::function<void()>& next) {
        const std::jthread watcher([&](const std::stop_token& end) {
            std::stop_token last;
            while (!end.stop_requested()) {
                std::stop_token now = job.stop_token();
                if (now.stop_requested() && now != last) {
                    last = std::move(now);
                    ++seen;
                }
                std::this_thread::yield();
            }
        });
        for (int i = 0; i < 3; ++i) {
            next();
            CHECK_FALSE(job.stop_token().stop_requested());
        }
    }};
    Worker worker(uri, around);
    worker.handle<Raw>("q",
                       [&](JobContext<Raw>& job) {
                           ++calls;
                           wait_for_stop(job.stop_token());
                           CHECK(eventually([&] { return seen == calls; }));
                       },
                       {.retry = much_later().retry, .time_limit = 20ms});
    push_jobs({"a"});
    const Running running(worker);
    CHECK(eventually([&] { return put_off().size() == 1; }));
    CHECK(calls == 3);
}

} // namespace worker_limits_test
