// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What handlers may be, throw, and do with the job's guard.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/job_batch.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace worker_handlers_test {

using namespace std::chrono_literals;
using orizuru::GarbageCollector;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::MessageGuard;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::test::eventually;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

// A returned value would be lost, and an error code with it.
static_assert(orizuru::JobHandler<void (*)(const Raw&), Raw>);
static_assert(orizuru::JobHandler<void (*)(const Job<Raw>&, JobContext<Raw>&), Raw>);
static_assert(!orizuru::JobHandler<bool (*)(const Raw&), Raw>);
static_assert(orizuru::JobBatchHandler<void (*)(orizuru::JobBatch<Raw>), Raw>);
static_assert(!orizuru::JobBatchHandler<int (*)(orizuru::JobBatch<Raw>), Raw>);

struct Silent : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

TEST_CASE_FIXTURE(WorkerFixture, "a job fails by an exception that says nothing") {
    Worker worker(uri, options());
    worker.handle<Raw>(
        "q", [](const Raw&) { throw Silent(); }, much_later());
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(put_off().front().attempt == 2);
    CHECK(put_off().front().last_error.empty());
}

TEST_CASE_FIXTURE(WorkerFixture, "a job whose handler throws DoNotRetry is not retried") {
    Worker worker(uri, options());
    orizuru::QueueOptions of_queue;
    bool buried = true;
    SUBCASE("a handler of jobs") {
        worker.handle<Raw>("q", [](const Raw&) { throw orizuru::DoNotRetry("no such user"); });
    }
    SUBCASE("a handler of batches") {
        worker.handle_batch<Raw>(
            "q", [](orizuru::JobBatch<Raw>) { throw orizuru::DoNotRetry("no such user"); },
            {.size = 1});
    }
    SUBCASE("for a policy that discards") {
        buried = false;
        of_queue.retry.exhausted = orizuru::Exhausted::discard;
        worker.handle<Raw>(
            "q", [](const Raw&) { throw orizuru::DoNotRetry("no such user"); }, of_queue);
    }
    push_jobs({"a"});
    Running running(worker);
    const auto kind = buried ? WorkerEventKind::died : WorkerEventKind::discarded;
    REQUIRE(eventually([&] { return diary.count(kind) == 1; }));
    CHECK(diary.of(kind).front().detail == "no such user");
    CHECK(running.stop() == 0);
    CHECK(redis.llen(dead) == (buried ? 1 : 0));
    CHECK(put_off().empty());
    CHECK(held_jobs().empty());
}

TEST_CASE_FIXTURE(WorkerFixture, "a guard that a handler has moved out keeps its job, when the "
                                 "worker is gone, too") {
    std::optional<MessageGuard<Job<Raw>>> kept;
    const std::string id = push_jobs({"a"});
    {
        Worker worker(uri, options());
        worker.handle<Raw>("q",
                           [&](JobContext<Raw>& job) {
                               kept.emplace(std::move(*job.guard()));
                               throw std::runtime_error("no matter what");
                           },
                           {.lease = 300ms});
        Running running(worker);
        REQUIRE(eventually([&] { return diary.count(WorkerEventKind::failed) == 1; }));
        CHECK(diary.of(WorkerEventKind::failed).front().job_id == id);
        CHECK(running.stop() == 0);
    }
    CHECK(held_jobs() == Texts{"a"});
    SUBCASE("and settles it") {
        CHECK(kept->ack());
        CHECK(nothing_left());
    }
    SUBCASE("and loses it as any does") {
        GarbageCollector collector(uri, "q", {.grace = 0ms});
        forget_heartbeat(only_id());
        REQUIRE(collector.collect().reclaimed == 1);
        CHECK(eventually([&] { return !kept->held(); }));
        CHECK_FALSE(kept->ack());
        CHECK(jobs() == Texts{"a"});
    }
}

} // namespace worker_handlers_test
