// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The shutdown of a worker with jobs in flight.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/in_flight.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace worker_async_stop_test {

using namespace std::chrono_literals;
using orizuru::JobContext;
using orizuru::JobDone;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::InFlightFixture;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::time_of;

struct Fixture : InFlightFixture {
    WorkerOptions impatient() const {
        WorkerOptions chosen = options(2);
        chosen.stop_timeout = 50ms;
        return chosen;
    }
};

TEST_CASE_FIXTURE(Fixture, "a stop tells the jobs in flight, waits for them, and fetches no more") {
    Worker worker(uri, options(2));
    std::atomic<int> told{0};
    worker.handle<Raw>(
        "q",
        [&](JobContext<Raw>& job, JobDone done) {
            kept.add(job->payload.bytes, std::move(done));
            std::thread([&told, token = job.stop_token()] {
                told += eventually([&] { return token.stop_requested(); }) ? 1 : 0;
            }).detach();
        },
        any_number());
    push_jobs({"a", "b", "c"});
    Running running(worker);
    REQUIRE(kept.has(3));
    worker.stop();
    CHECK(eventually([&] { return told == 3; }));
    push_jobs({"d"});
    CHECK_FALSE(running.ended(100ms));
    kept.take("a")();
    kept.take("b")(std::make_exception_ptr(std::runtime_error("interrupted")));
    static_cast<void>(kept.take("c")); // which drops it
    CHECK(running.left() == 0);
    CHECK(jobs() == Texts{"c", "b", "d"}); // each goes to the front
    for (const std::string& bytes : oldest_first("q")) {
        CHECK(job_of(bytes).attempt == 1);
    }
    CHECK(held_jobs().empty());
    CHECK(worker.statistics().succeeded == 1);
    CHECK(worker.statistics().requeued == 2);
    CHECK(worker.statistics().failed == 0);
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(Fixture,
                  "jobs in flight that do not end are requeued in the queue's order by one "
                  "step, and end nothing afterwards") {
    constexpr std::size_t count = 2000;
    auto worker = std::make_unique<Worker>(uri, impatient());
    worker->handle<Raw>("q", keep(), any_number());
    Texts payloads;
    for (std::size_t i = 0; i < count; ++i) {
        payloads.push_back(std::to_string(i));
    }
    push_jobs(payloads);
    std::optional<Running> running(std::in_place, *worker);
    REQUIRE(kept.has(count));
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(running->stop() == 0);
    running.reset();
    CHECK(jobs() == payloads);
    CHECK(held_jobs().empty());
    CHECK(nobody_left());
    CHECK(runs_of("evalsha") + runs_of("eval") < 50);
    CHECK(worker->statistics().requeued == count);
    CHECK(diary.count(WorkerEventKind::requeued) == count);
    CHECK(worker->running().empty());
    SUBCASE("while the worker lives") {}
    SUBCASE("when the worker is gone") { worker.reset(); }
    for (JobDone& done : kept.take_all()) {
        CHECK(done);
        done();
    }
    CHECK(jobs() == payloads);
}

TEST_CASE_FIXTURE(Fixture, "jobs in flight are requeued with the attributes that they have set") {
    Worker worker(uri, impatient());
    worker.handle<Raw>(
        "q",
        [kept = kept](JobContext<Raw>& job, JobDone done) {
            if (job->payload.bytes != "b") {
                job.set_attribute("done", job->payload.bytes);
            }
            kept.add(job->payload.bytes, std::move(done));
        },
        any_number());
    push_jobs({"a", "b", "c"});
    Running running(worker);
    REQUIRE(kept.has(3));
    CHECK(running.stop() == 0);
    Texts requeued;
    for (const std::string& bytes : oldest_first("q")) {
        const auto job = job_of(bytes);
        requeued.push_back(job.payload.bytes);
        for (const auto& [name, value] : job.attributes) {
            requeued.back() += " " + name + " " + value;
        }
    }
    std::ranges::sort(requeued);
    CHECK(requeued == Texts{"a done a", "b", "c done c"});
    CHECK(held_jobs().empty());
    CHECK(nobody_left());
    CHECK(worker.statistics().requeued == 3);
    CHECK(diary.count(WorkerEventKind::requeued) == 3);
}

TEST_CASE_FIXTURE(Fixture, "a handler that has not returned yet when its job is requeued ends "
                           "nothing either") {
    Worker worker(uri, impatient());
    const Gate gate;
    worker.handle<Raw>(
        "q",
        [gate](const Raw&, JobDone done) {
            gate.pass();
            done();
        },
        any_number());
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    CHECK(running.stop() == 1); // its thread
    CHECK(jobs() == Texts{"a"});
    gate.open();
    CHECK(eventually([&] { return worker.running().empty(); }));
    CHECK(jobs() == Texts{"a"});
    CHECK(worker.statistics().succeeded == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "a failed job in flight of a worker that stops is put off if it says so") {
    Worker worker(uri, options());
    worker.handle<Raw>(
        "q",
        [&](JobContext<Raw>& job, JobDone done) {
            job.fail("no such user");
            kept.add("x", std::move(done));
        },
        any_number());
    push_jobs({"x"});
    Running running(worker);
    REQUIRE(kept.has(1));
    worker.stop();
    kept.take("x")();
    CHECK(running.left() == 0);
    CHECK(put_off().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a stop returns in time whatever Redis does, with jobs in flight") {
    orizuru::test::RedisServer own;
    orizuru::test::RedisClient there(own.uri());
    WorkerOptions chosen = impatient();
    Worker worker(own.uri(), chosen);
    worker.handle<Raw>("q", keep(), any_number());
    Texts all;
    for (int i = 0; i < 100; ++i) {
        all.push_back(bytes_of(orizuru::make_job(Raw{"x"})));
    }
    there.lpush("q", all);
    Running running(worker);
    REQUIRE(kept.has(100));
    own.kill();
    for (int i = 0; i < 50; ++i) {
        kept.take("x")(); // cannot be acked
    }
    const auto time = time_of([&] {
        worker.stop();
        static_cast<void>(running.left());
    });
    CHECK(time < 7s); // 50 ms and 5 s
}

TEST_CASE_FIXTURE(Fixture,
                  "a job that has failed before a stop has failed, though it is settled in the "
                  "stop") {
    const Gate gate;
    QueueOptions chosen = any_number();
    chosen.retry.decide = [gate](const std::exception_ptr&, int) {
        gate.pass();
        return orizuru::RetryDecision();
    };
    Worker worker(uri, options());
    std::stop_token token;
    worker.handle<Raw>(
        "q",
        [&](JobContext<Raw>& job, JobDone done) {
            token = job.stop_token();
            kept.add("x", std::move(done));
        },
        chosen);
    push_jobs({"x", "y"});
    Running running(worker);
    REQUIRE(kept.has(2));
    for (JobDone& done : kept.take_all()) {
        done(std::make_exception_ptr(std::runtime_error("busy")));
    }
    REQUIRE(gate.reached());
    worker.stop();
    REQUIRE(eventually([&] { return token.stop_requested(); }));
    gate.open();
    CHECK(running.left() == 0);
    CHECK(put_off().size() == 2);
    CHECK(worker.statistics().requeued == 0);
    CHECK(worker.statistics().failed == 2);
}

TEST_CASE_FIXTURE(Fixture, "a thread that settles and has not ended counts") {
    const Gate gate;
    QueueOptions chosen = any_number();
    chosen.retry.decide = [gate](const std::exception_ptr&, int) {
        gate.pass();
        return orizuru::RetryDecision();
    };
    Worker worker(uri, impatient());
    worker.handle<Raw>("q", keep(), chosen);
    push_jobs({"x"});
    Running running(worker);
    REQUIRE(kept.has(1));
    kept.take("x")(std::make_exception_ptr(std::runtime_error("busy")));
    REQUIRE(gate.reached());
    CHECK(running.stop() == 1);
    gate.open();
}

TEST_CASE_FIXTURE(Fixture, "threads that wait for Redis end in time, though the queue was paused") {
    orizuru::test::RedisServer own;
    orizuru::test::RedisClient there(own.uri());
    const auto threads = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    };
    const auto before = threads();
    Worker worker(own.uri(), impatient());
    worker.handle<Raw>("q", keep(), any_number());
    Texts all;
    for (int i = 0; i < 20; ++i) {
        all.push_back(bytes_of(orizuru::make_job(Raw{"x"})));
    }
    there.lpush("q", all);
    Running running(worker);
    REQUIRE(kept.has(20));
    orizuru::Pause(own.uri(), "q").pause();
    REQUIRE(eventually([&] {
        return orizuru::test::contains(there.command({"INFO", "clients"}).text,
                                       "blocked_clients:0");
    }));
    own.pause();
    const auto time = time_of([&] {
        worker.stop();
        for (JobDone& done : kept.take_all()) {
            done(std::make_exception_ptr(std::runtime_error("busy")));
        }
        static_cast<void>(running.left());
    });
    CHECK(time < 7s);
    CHECK(eventually([&] { return threads() == before; })); // while Redis does not answer
    own.resume();
}

TEST_CASE_FIXTURE(Fixture, "a lease is kept for jobs in flight while their loop stands still") {
    QueueOptions chosen = any_number();
    chosen.lease = 200ms;
    Worker worker(uri, options());
    worker.handle<Raw>("q", keep(), chosen);
    push_jobs(Texts(100, "x"));
    const Running running(worker);
    REQUIRE(kept.has(100));
    const auto begun = std::chrono::steady_clock::now();
    CHECK(eventually([&] { return std::chrono::steady_clock::now() > begun + 5 * 200ms; }));
    const orizuru::Collected collected = orizuru::GarbageCollector(uri, "q").collect();
    CHECK(collected == orizuru::Collected());
    for (JobDone& done : kept.take_all()) {
        done();
    }
    CHECK(eventually([&] { return nothing_left(); }));
    CHECK(diary.count(WorkerEventKind::lost) == 0);
}

} // namespace worker_async_stop_test
