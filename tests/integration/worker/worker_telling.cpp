// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker's events about its jobs, and its counts.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs/retry.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace worker_telling_test {

using namespace std::chrono_literals;
using orizuru::Guarantee;
using orizuru::JobContext;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEvent;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Running;
using orizuru::test::WorkerFixture;

struct Fixture : WorkerFixture {
    /// What a worker has told of itself, in order.
    std::vector<WorkerEventKind> phases() const {
        std::vector<WorkerEventKind> found;
        for (const auto& told : diary.all()) {
            if (told.kind <= WorkerEventKind::stopping) {
                found.push_back(told.kind);
            }
        }
        return found;
    }
};

TEST_CASE_FIXTURE(Fixture, "a worker tells once that it has started, goes quiet and stops") {
    using enum WorkerEventKind;
    Worker worker(uri, options());
    worker.handle<Raw>("q", write_down());
    std::vector<WorkerEventKind> expected{started};
    Running running(worker);
    REQUIRE(eventually([&] { return phases() == expected; }));
    CHECK(ids().size() == 1);
    SUBCASE("stopped at once") {}
    SUBCASE("quieted twice before") {
        worker.quiet();
        expected.push_back(quieted);
        REQUIRE(eventually([&] { return phases() == expected; }));
        worker.quiet();
        CHECK_FALSE(running.ended(50ms));
    }
    CHECK(running.stop() == 0);
    expected.push_back(stopping);
    CHECK(phases() == expected);
}

TEST_CASE_FIXTURE(Fixture, "a worker that cannot start tells neither start nor stop") {
    Worker worker("unix:///nowhere/redis.sock", options());
    worker.handle<Raw>("q", write_down());
    CHECK_THROWS_AS(worker.run(), orizuru::ConnectionError);
    worker.stop();
    CHECK(worker.run() == 0);
    CHECK(phases().empty());
}

TEST_CASE_FIXTURE(Fixture, "while a slow on_event hears of the stop, handlers know of it, too") {
    const Gate gate;
    std::atomic<bool> told{false};
    WorkerOptions slow = options();
    slow.on_event = [&](const WorkerEvent& event) {
        if (event.kind == WorkerEventKind::stopping) {
            CHECK(eventually([&] { return told.load(); }));
        }
    };
    Worker worker(uri, slow);
    worker.handle<Raw>("q", [&](JobContext<Raw>& job) {
        gate.pass();
        told = eventually([&] { return job.stop_token().stop_requested(); });
    });
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    gate.open();
    CHECK(running.stop() == 0);
    CHECK(told);
}

TEST_CASE_FIXTURE(Fixture, "each success of a job is told, and nothing else as a success") {
    Worker worker(uri, options());
    const auto handle = [](const Raw& payload, JobContext<Raw>& context) {
        if (payload.bytes == "fails") {
            throw std::runtime_error("no such user");
        }
        if (payload.bytes == "is settled") {
            context.guard()->ack();
        }
    };
    SUBCASE("at least once") { worker.handle<Raw>("q", handle, much_later()); }
    SUBCASE("at most once") {
        worker.handle<Raw>("q",
                           [](const Raw& payload) {
                               if (payload.bytes != "b") {
                                   throw std::runtime_error("no such user");
                               }
                           },
                           {.guarantee = Guarantee::at_most_once});
    }
    SUBCASE("in batches") {
        worker.handle_batch<Raw>(
            "q",
            [&](orizuru::JobBatch<Raw> jobs) {
                for (JobContext<Raw>& job : jobs) {
                    if (job->payload.bytes == "fails") {
                        job.fail("no such user");
                    } else if (job->payload.bytes == "is settled") {
                        job.guard()->ack();
                    }
                }
            },
            {.size = 3}, much_later());
    }
    push_jobs({"fails", "is settled"});
    const std::string id = push_jobs({"b"});
    Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::succeeded) == 1; }));
    CHECK(running.stop() == 0);
    REQUIRE(diary.count(WorkerEventKind::succeeded) == 1);
    CHECK(diary.of(WorkerEventKind::succeeded).front().job_id == id);
    CHECK(diary.of(WorkerEventKind::succeeded).front().queue == "q");
    CHECK(worker.statistics().succeeded == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "a discarded job whose handler has its guard is told without its bytes") {
    std::optional<orizuru::MessageGuard<orizuru::Job<Raw>>> mine;
    Worker worker(uri, options());
    worker.handle<Raw>("q",
                       [&](JobContext<Raw>& context) {
                           mine.emplace(std::move(*context.guard()));
                           throw std::runtime_error("no such user");
                       },
                       {.guarantee = Guarantee::at_most_once});
    const std::string id = push_jobs({"a"});
    const Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::discarded) == 1; }));
    const auto told = diary.of(WorkerEventKind::discarded).front();
    CHECK(told.job_id == id);
    CHECK(told.detail == "no such user");
    CHECK(told.payload.empty());
    CHECK(diary.count(WorkerEventKind::unsettled) == 0);
}

TEST_CASE_FIXTURE(Fixture, "the outcome of a job is reported with its guard unlocked") {
    std::atomic<JobContext<Raw>*> context{nullptr};
    WorkerEventKind kind{};
    QueueOptions of_queue = much_later();
    const Gate gate;
    bool stops = false;
    SUBCASE("put off") { kind = WorkerEventKind::failed; }
    SUBCASE("buried") {
        kind = WorkerEventKind::died;
        of_queue.retry.max_attempts = 1;
    }
    SUBCASE("not settled") {
        kind = WorkerEventKind::unsettled;
        redis.set("orizuru:{q}:scheduled", "a string");
    }
    SUBCASE("requeued") {
        kind = WorkerEventKind::requeued;
        stops = true;
    }
    WorkerOptions watched = options();
    watched.stop_timeout = 0ms;
    std::atomic<int> told{0};
    std::atomic<bool> locked{false};
    watched.on_event = [&](const WorkerEvent& event) {
        if (event.kind == kind) {
            // On another thread: the same thread could lock it again.
            auto open = std::async(std::launch::async,
                                   [&] { return context.load()->guard_within(0ms).has_value(); });
            locked = locked || !open.get();
            ++told;
        }
    };
    Worker worker(uri, watched);
    worker.handle<Raw>(
        "q",
        [&](JobContext<Raw>& job) {
            context = &job;
            if (stops) {
                gate.pass();
            }
            throw std::runtime_error("no such user");
        },
        of_queue);
    push_jobs({"a"});
    Running running(worker);
    if (stops) {
        REQUIRE(gate.reached());
        worker.stop();
    }
    CHECK(eventually([&] { return told > 0; }));
    CHECK_FALSE(locked);
    redis.del("orizuru:{q}:scheduled");
    gate.open();
    worker.stop();
    CHECK(running.ended());
}

TEST_CASE_FIXTURE(Fixture, "a job that goes back for want of a free thread is neither told nor "
                           "counted") {
    const Gate gate;
    Worker worker(uri, options());
    const auto handler = [&](const Raw&) { gate.pass(); };
    worker.handle<Raw>("q", handler).handle<Raw>("r", handler);
    const Running running(worker);
    REQUIRE(so_many_wait(2));
    redis.command({"EVAL", "redis.call('LPUSH', 'q', ARGV[1]); redis.call('LPUSH', 'r', ARGV[1])",
                   "2", "q", "r", bytes_of(orizuru::make_job(Raw{"a"}))});
    REQUIRE(gate.reached());
    CHECK(eventually([&] { return redis.llen("q") + redis.llen("r") == 1; }));
    CHECK(worker.statistics().requeued == 0);
    CHECK(diary.count(WorkerEventKind::requeued) == 0);
    gate.open();
    CHECK(eventually([&] { return worker.statistics().succeeded == 2; }));
}

TEST_CASE_FIXTURE(Fixture, "a job that was requeued counts once, whatever its handler does then") {
    const Gate gate;
    WorkerOptions impatient = options();
    impatient.stop_timeout = 0ms;
    Worker worker(uri, impatient);
    worker.handle<Raw>("q", [&](const Raw&) {
        gate.pass();
        throw std::runtime_error("too late");
    });
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    CHECK(running.stop() == 1);
    gate.open();
    CHECK(eventually([&] { return worker.running().empty(); }));
    CHECK(worker.statistics().requeued == 1);
    CHECK(worker.statistics().failed == 0);
    CHECK(worker.statistics().settled == 0);
    CHECK(diary.count(WorkerEventKind::failed) == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "since() is when the handler began, however long the job was held before") {
    const Gate gate;
    Worker worker(uri, options());
    std::chrono::steady_clock::time_point begun;
    std::chrono::steady_clock::time_point since;
    worker.handle<Raw>("q",
                       [&](const Raw& payload, JobContext<Raw>& context) {
                           if (payload.bytes == "a") {
                               gate.pass();
                               begun = std::chrono::steady_clock::now();
                           } else {
                               since = context.since();
                           }
                       },
                       {.prefetch = 2});
    push_jobs({"a", "b"});
    const Running running(worker);
    REQUIRE(gate.reached());
    gate.open();
    REQUIRE(eventually([&] { return worker.statistics().succeeded == 2; }));
    CHECK(since >= begun);
}

TEST_CASE_FIXTURE(Fixture, "progress that cannot be written is reported, and the job goes on") {
    Worker worker(uri, options());
    std::atomic<bool> written{true};
    worker.handle<Raw>("q", [&](JobContext<Raw>& context) {
        written = context.progress(0.5);
        CHECK_THROWS_AS(context.progress(2), std::invalid_argument);
    });
    const auto job = orizuru::make_job(Raw{"a"});
    redis.set("orizuru:{q}:progress:" + job.id, "a string");
    push({bytes_of(job)});
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 1; }));
    CHECK_FALSE(written);
    REQUIRE(diary.count(WorkerEventKind::progress_failed) == 1);
    CHECK(diary.of(WorkerEventKind::progress_failed).front().job_id == job.id);
    CHECK(contains(diary.of(WorkerEventKind::progress_failed).front().detail, "WRONGTYPE"));
}

} // namespace worker_telling_test
