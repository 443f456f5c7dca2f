// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What handlers may be, throw, and do with the job's guard.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_batch.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>

#include <atomic>
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
using orizuru::test::Gate;
using orizuru::test::message_of;
using orizuru::test::patience;
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

TEST_CASE_FIXTURE(WorkerFixture, "a job whose handler throws Discard is acked, and counts as "
                                 "failed") {
    Worker worker(uri, options());
    worker.handle<Raw>("q", [](const Raw&) { throw orizuru::Discard("the user is gone"); });
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::discarded) == 1; }));
    CHECK(diary.of(WorkerEventKind::discarded).front().detail == "the user is gone");
    CHECK(running.stop() == 0);
    CHECK(worker.statistics().failed == 1);
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(WorkerFixture, "a unique job that ends unhandled gives up its lock") {
    Worker worker(uri, options());
    orizuru::QueueOptions of_queue;
    Job<Raw> job = orizuru::make_job(Raw{"a"});
    job.unique_id = "u";
    std::atomic<int> runs = 1;
    SUBCASE("as it expired") {
        job.expires_at = orizuru::job_time() - std::chrono::hours(1);
        runs = 0;
    }
    SUBCASE("by Discard") {}
    SUBCASE("by a policy that discards") {
        of_queue.retry.max_attempts = 1;
        of_queue.retry.exhausted = orizuru::Exhausted::discard;
    }
    worker.handle<Raw>(
        "q",
        [&](const Raw&) {
            --runs;
            if (of_queue.retry.max_attempts == 1) {
                throw std::runtime_error("again");
            }
            throw orizuru::Discard("the user is gone");
        },
        of_queue);
    redis.set("orizuru:{q}:unique:u", "ack " + job.id);
    redis.lpush("q", {bytes_of(job)});
    const Running running(worker);
    CHECK(eventually([&] { return !redis.exists("orizuru:{q}:unique:u"); }));
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(runs == 0);
}

struct Busy : std::runtime_error {
    using std::runtime_error::runtime_error;
};

TEST_CASE_FIXTURE(WorkerFixture, "a policy decides by the exception what becomes of a job") {
    using orizuru::RetryDecision;
    using Action = RetryDecision::Action;
    Worker worker(uri, options());
    orizuru::QueueOptions of_queue = much_later();
    RetryDecision decision;
    Texts texts;
    of_queue.retry.max_attempts = 3;
    of_queue.retry.decide = [&](const std::exception_ptr& error, int attempt) {
        try {
            std::rethrow_exception(error);
        } catch (const Busy& busy) {
            texts.push_back(busy.what() + std::to_string(attempt));
            return decision;
        } catch (const std::runtime_error& failed) {
            texts.push_back(failed.what());
            return RetryDecision{Action::bury};
        }
    };
    worker.handle<Raw>(
        "q",
        [](JobContext<Raw>& job) {
            if (job->payload.bytes == "fails") {
                job.fail("by itself");
            } else {
                throw Busy("busy");
            }
        },
        of_queue);
    Job<Raw> job = orizuru::make_job(Raw{"a"});
    job.attempt = 2;
    SUBCASE("by its own rules") { decision = {Action::by_policy}; }
    SUBCASE("to try again when it likes") { decision = {Action::retry, 30min}; }
    SUBCASE("but not to try it more often than it may") {
        decision = {Action::retry, 0ms};
        job.attempt = 3;
    }
    SUBCASE("to discard it") { decision = {Action::discard}; }
    SUBCASE("to bury it") { decision = {Action::bury}; }
    SUBCASE("also for a job that its handler lets fail") { job.payload.bytes = "fails"; }
    const bool fails = job.payload.bytes == "fails";
    redis.lpush("q", bytes_of(job));
    Running running(worker);
    REQUIRE(eventually([&] { return worker.statistics().failed == 1; }));
    CHECK(running.stop() == 0);
    CHECK(texts == (fails ? Texts{"by itself"} : Texts{"busy" + std::to_string(job.attempt)}));
    const bool again = !fails && job.attempt == 2 &&
                       (decision.action == Action::by_policy || decision.action == Action::retry);
    REQUIRE(put_off().size() == (again ? 1 : 0));
    if (again) {
        CHECK(diary.of(WorkerEventKind::failed).front().retry_in ==
              (decision.action == Action::retry ? 30min : 60min));
    } else {
        CHECK(redis.llen(dead) == (decision.action == Action::discard ? 0 : 1));
    }
    CHECK(held_jobs().empty());
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "a policy may ask for the job, with the attributes that its run has "
                  "left") {
    Worker worker(uri, options());
    orizuru::QueueOptions of_queue = much_later();
    Texts asked;
    of_queue.retry.decide = [&](const std::exception_ptr&, const orizuru::FailedJob& job) {
        asked = {std::string(job.id), std::string(job.kind), std::to_string(job.attempt),
                 job.attributes.at("tenant")};
        return orizuru::RetryDecision{orizuru::RetryDecision::Action::discard};
    };
    worker.serve("q", of_queue);
    worker.handle<Raw>("q", "charge", [](JobContext<Raw>& job) {
        job.set_attribute("tenant", "7");
        throw Busy("busy");
    });
    Job<Raw> job = orizuru::make_job(Raw{"a"});
    job.kind = "charge";
    job.attempt = 2;
    redis.lpush("q", bytes_of(job));
    Running running(worker);
    REQUIRE(eventually([&] { return nothing_left(); }));
    CHECK(running.stop() == 0);
    CHECK(asked == Texts{job.id, "charge", "2", "7"});
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "a policy is not asked about DoNotRetry, and its exception lies on "
                  "the dead list beside the job's") {
    Worker worker(uri, options());
    orizuru::QueueOptions of_queue;
    of_queue.retry.decide = [](const std::exception_ptr&, int) -> orizuru::RetryDecision {
        throw std::logic_error("no idea");
    };
    worker.handle<Raw>(
        "q",
        [](const Raw& payload) {
            if (payload.bytes == "for good") {
                throw orizuru::DoNotRetry("no such user");
            }
            throw Busy("busy");
        },
        of_queue);
    push_jobs({"for good", "other"});
    const Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::died) == 2; }));
    CHECK(diary.of(WorkerEventKind::died).front().detail == "no such user");
    CHECK(diary.of(WorkerEventKind::died).back().detail == "busy; its decide: no idea");
}

TEST_CASE_FIXTURE(WorkerFixture,
                  "an exception during a shutdown is no failure, unless it says what "
                  "becomes of the job") {
    const Gate gate;
    Worker worker(uri, options(4));
    worker
        .handle<Raw>(
            "q",
            [gate](const Raw& payload, JobContext<Raw>& job) {
                gate.pass();
                CHECK(eventually([&] { return job.stop_token().stop_requested(); }));
                if (payload.bytes == "for good") {
                    throw orizuru::DoNotRetry("no such user");
                }
                if (payload.bytes == "fails") {
                    job.fail("by itself");
                    return;
                }
                throw Busy("interrupted");
            },
            much_later())
        .handle_batch<Raw>(
            "batches",
            [gate](const orizuru::JobBatch<Raw>& jobs) {
                gate.pass();
                CHECK(eventually([&] { return jobs[0].stop_token().stop_requested(); }));
                throw Busy("interrupted");
            },
            {.size = 3}, much_later());
    push_jobs({"a", "for good", "fails"});
    push_jobs({"1", "2", "3"}, "batches");
    Running running(worker);
    REQUIRE(gate.reached(4));
    gate.open();
    CHECK(running.stop() == 0);
    CHECK(jobs() == Texts{"a"});
    CHECK(job_of(waiting().front()).attempt == 1);
    CHECK(redis.llen(dead) == 1);
    CHECK(put_off().size() == 1);
    CHECK(jobs("batches") == Texts{"1", "2", "3"});
    CHECK(worker.statistics().requeued == 4);
    CHECK(worker.statistics().failed == 2);
    CHECK(diary.count(WorkerEventKind::requeued) == 4);
}

TEST_CASE_FIXTURE(WorkerFixture, "by hand a job is retried by its exception as a worker does") {
    using orizuru::RetryOutcome;
    orizuru::RetryPolicy policy = much_later().retry;
    policy.decide = [](const std::exception_ptr&, int) {
        return orizuru::RetryDecision{orizuru::RetryDecision::Action::retry, 30min};
    };
    orizuru::Consumer<Job<Raw>> consumer(uri, "q");
    const auto retried = [&](const std::exception_ptr& error) {
        push_jobs({"a"});
        auto job = consumer.next(patience);
        REQUIRE(job);
        return retry(*job, policy, error);
    };
    CHECK(retried(std::make_exception_ptr(Busy("busy"))).delay == 30min);
    CHECK(put_off().front().last_error == "busy");
    const auto buried = retried(std::make_exception_ptr(orizuru::DoNotRetry("no such user")));
    CHECK(buried.outcome == RetryOutcome::buried);
    CHECK(buried.reason == "no such user");
    CHECK(retried(std::make_exception_ptr(orizuru::Discard("gone"))).outcome ==
          RetryOutcome::discarded);
    push_jobs({"a"});
    auto job = consumer.next(patience);
    REQUIRE(job);
    CHECK(message_of<std::invalid_argument>([&] { retry(*job, policy, std::exception_ptr()); }) ==
          "retry needs an exception");
    CHECK_FALSE(job->settled());
    CHECK(retry(*job, policy, "by hand").delay == 1h); // without an exception it is not asked
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
        REQUIRE(reclaimed_by(collector) == 1);
        CHECK(eventually([&] { return !kept->held(); }));
        CHECK_FALSE(kept->ack());
        CHECK(jobs() == Texts{"a"});
    }
}

} // namespace worker_handlers_test
