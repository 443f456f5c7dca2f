// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a worker does with a job before and after its handler.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/unique.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace worker_settling_test {

using namespace std::chrono_literals;
using orizuru::GarbageCollector;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::make_job;
using orizuru::Producer;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::Child;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

void fail(const Raw& /*payload*/) { throw std::runtime_error("no such user"); }

struct Fixture : WorkerFixture {
    GarbageCollector collector{uri, "q", {.grace = std::chrono::milliseconds(0)}};
};

TEST_CASE_FIXTURE(Fixture, "a process that was asleep for longer than its lease does not handle "
                           "the jobs in its hands") {
    QueueOptions of_queue{.lease = 300ms, .prefetch = 5};
    push_jobs({"a", "b", "c", "d", "e"});
    Child child([=, this] {
        Worker worker(uri, options());
        worker.handle<Raw>(
            "q",
            [this](const Raw& payload) {
                Producer<Raw>(uri, "ran").push(payload);
                if (payload.bytes == "a") {
                    ::raise(SIGSTOP);
                }
            },
            of_queue);
        return worker.run();
    });
    REQUIRE(eventually([&] { return oldest_first("ran") == Texts{"a"}; }));
    REQUIRE(eventually([&] { return collector.collect().reclaimed > 0; }));
    redis.command({"RENAME", "q", "elsewhere"}); // others have them
    push_jobs({"z"});
    child.signal(SIGCONT);
    REQUIRE(eventually([&] { return contains(oldest_first("ran").back(), "z"); }));
    CHECK(oldest_first("ran") == Texts{"a", "z"});
    CHECK(jobs("elsewhere") == Texts{"a", "b", "c", "d", "e"});
}

TEST_CASE_FIXTURE(Fixture,
                  "a job that its worker lost before the handler is reported, and not handled") {
    const Gate gate;
    Worker worker(uri, options());
    worker.handle<Raw>("q",
                       [=, this](const Raw& payload) {
                           handled.add(payload.bytes);
                           gate.pass();
                       },
                       {.lease = 2s, .prefetch = 3});
    push_jobs({"a", "b", "c"});
    const Running running(worker);
    REQUIRE(gate.reached());
    REQUIRE(reclaimed_by(collector) == 3);
    redis.command({"RENAME", "q", "elsewhere"});
    REQUIRE(eventually([&] { return diary.has_lease_lost(); }));
    gate.open();
    CHECK(eventually([&] { return diary.count(WorkerEventKind::lost) == 3; }));
    CHECK(handled.all() == Texts{"a"});
}

TEST_CASE_FIXTURE(Fixture, "a job is buried when its backoff throws, with both reasons") {
    Worker worker(uri, options());
    const orizuru::Backoff broken = [](int, std::uint64_t) -> std::chrono::milliseconds {
        throw std::runtime_error("no table of delays");
    };
    SUBCASE("a handler of jobs") { worker.handle<Raw>("q", fail, {.retry = {.backoff = broken}}); }
    SUBCASE("a handler of batches") {
        worker.handle_batch<Raw>(
            "q", [](orizuru::JobBatch<Raw>) { throw std::runtime_error("no such user"); },
            {.size = 1}, {.retry = {.backoff = broken, .exhausted = orizuru::Exhausted::discard}});
    }
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(eventually([&] { return redis.llen(dead) == 1; }));
    CHECK(contains(redis.lrange(dead).front(), "no such user; its backoff: no table"));
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::died) == 1; }));
    CHECK(contains(diary.of(WorkerEventKind::died).front().detail, "no such user"));
    CHECK(contains(diary.of(WorkerEventKind::died).front().detail, "no table of delays"));
    CHECK(eventually([&] { return held_jobs().empty(); }));
    CHECK(redis.llen(unack) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a job is put off for a century when its retry waits for longer") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", fail, {.retry = {.backoff = [](int, std::uint64_t) {
                                       return std::chrono::milliseconds::max();
                                   }}});
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(put_off().front().attempt == 2);
    CHECK(redis.llen(unack) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a job's lock is released with its ack") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    Producer<Job<Raw>> producer(uri, "q");
    CHECK(push_unique(producer, "id", make_job(Raw{"a"})));
    const Running running(worker);
    REQUIRE(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK(push_unique(producer, "id", make_job(Raw{"b"})));
    CHECK(has_handled({"a", "b"}));
}

TEST_CASE_FIXTURE(Fixture,
                  "a job whose next attempt is too large is buried, whatever the policy, and "
                  "says so") {
    Job<Raw> job = make_job(Raw{std::string(1000, 'x')});
    job.attempt = 127; // the next takes a byte more
    Worker worker(uri, options());
    worker.handle<Raw>("q", fail,
                       {.retry = {.max_attempts = 1000, .exhausted = orizuru::Exhausted::discard},
                        .max_payload = static_cast<std::int64_t>(bytes_of(job).size())});
    push({bytes_of(job)});
    const Running running(worker);
    REQUIRE(eventually([&] { return redis.llen(dead) == 1; }));
    CHECK(contains(redis.lrange(dead).front(), "no such user; too large to be tried again"));
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::died) == 1; }));
    CHECK(contains(diary.of(WorkerEventKind::died).front().detail, "too large"));
}

TEST_CASE_FIXTURE(Fixture,
                  "retry_for counts from a job's first failure, however long it waited before") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", fail,
                       {.retry = {.backoff = orizuru::backoff::fixed(1min), .retry_for = 1h}});
    Job<Raw> job = make_job(Raw{"a"});
    job.first_enqueued_at -= 48h;
    job.enqueued_at -= 48h;
    SUBCASE("at the first") {
        push({bytes_of(job)});
        const Running running(worker);
        REQUIRE(eventually([&] { return put_off().size() == 1; }));
        CHECK(put_off().front().first_failed_at.value() + 1min == put_off().front().enqueued_at);
    }
    SUBCASE("at a later one") {
        job.attempt = 2;
        job.first_failed_at = orizuru::job_time() - 30min;
        push({bytes_of(job)});
        const Running running(worker);
        REQUIRE(eventually([&] { return put_off().size() == 1; }));
        CHECK(put_off().front().first_failed_at == job.first_failed_at);
    }
    SUBCASE("at one that is too late") {
        job.attempt = 2;
        job.first_failed_at = orizuru::job_time() - 1h;
        push({bytes_of(job)});
        const Running running(worker);
        CHECK(eventually([&] { return redis.llen(dead) == 1; }));
    }
}

TEST_CASE_FIXTURE(Fixture, "what a handler buries is told, counted, and cut from the dead list in "
                           "time") {
    Worker worker(uri, options());
    QueueOptions keeps_two;
    keeps_two.dead.most = 2;
    const auto bury = [](JobContext<Raw>& job) { job.guard()->bury("no such user"); };
    std::uint64_t failed = 0;
    SUBCASE("a handler of jobs") { worker.handle<Raw>("q", bury, keeps_two); }
    SUBCASE("a handler of batches") {
        worker.handle_batch<Raw>(
            "q", [=](orizuru::JobBatch<Raw> batch) { std::ranges::for_each(batch, bury); },
            {.size = 3}, keeps_two);
    }
    SUBCASE("a handler that fails then") {
        failed = 5;
        worker.handle<Raw>(
            "q",
            [=](JobContext<Raw>& job) {
                bury(job);
                job.fail("and no such order");
            },
            keeps_two);
    }
    redis.lpush(dead, "x", "y", "z");
    const Running running(worker);
    // It is trimmed once before it has an entry.
    REQUIRE(eventually([this] { return redis.llen(dead) == 2; }));
    push_jobs({"a", "b", "c", "d", "e"});
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::died) == 5; }));
    const auto told = diary.of(WorkerEventKind::died).front();
    CHECK(told.detail == "no such user");
    CHECK(job_of(told.payload).payload.bytes == "a");
    CHECK(told.job_id == job_of(told.payload).id);
    CHECK(eventually([&] { return redis.llen(dead) == 2; }));
    CHECK(eventually([&] { return worker.statistics().died == 5; }));
    CHECK(worker.statistics().failed == failed);
    CHECK(diary.count(WorkerEventKind::failed) == failed);
}

TEST_CASE_FIXTURE(Fixture,
                  "a job that its handler settles without burying it is not reported as died") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", [](JobContext<Raw>& job) { job.guard()->push("elsewhere"); });
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(eventually([&] { return worker.statistics().settled == 1; }));
    CHECK(running.stop() == 0);
    CHECK(diary.count(WorkerEventKind::died) == 0);
    CHECK(worker.statistics().died == 0);
}

} // namespace worker_settling_test
