// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker's handlers that take several jobs at once.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/batch.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

namespace worker_batches_test {

using namespace std::chrono_literals;
using orizuru::BatchOptions;
using orizuru::Job;
using orizuru::job_time;
using orizuru::JobBatch;
using orizuru::JobContext;
using orizuru::make_job;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::patience;
using orizuru::test::Record;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Fixture : WorkerFixture {
    Record<Texts> batches;

    static Texts payloads_in(JobBatch<Raw> batch) {
        Texts payloads;
        for (const JobContext<Raw>& job : batch) {
            payloads.push_back(job->payload.bytes);
        }
        return payloads;
    }
    [[nodiscard]] auto write_down_batch() const {
        return [record = batches](JobBatch<Raw> batch) { record.add(payloads_in(batch)); };
    }
    bool has_handled_batches(const std::vector<Texts>& expected) {
        return eventually([&] { return batches.all() == expected; });
    }
};

TEST_CASE_FIXTURE(Fixture, "a batch is handled when it is full, whatever its time") {
    Worker worker(uri, options());
    QueueOptions of_queue;
    SUBCASE("fetched one by one") {}
    SUBCASE("fetched together") { of_queue.prefetch = 4; }
    worker.handle_batch<Raw>("q", write_down_batch(), {.size = 3, .time = 1h}, of_queue);
    push_jobs({"a", "b", "c", "d", "e", "f", "g"});
    Running running(worker);
    CHECK(has_handled_batches({{"a", "b", "c"}, {"d", "e", "f"}}));
    push_jobs({"h", "i"});
    CHECK(has_handled_batches({{"a", "b", "c"}, {"d", "e", "f"}, {"g", "h", "i"}}));
    CHECK(eventually([this] { return nothing_left(); }));
    CHECK(running.stop() == 0);
    CHECK(worker.statistics().succeeded == 9);
}

TEST_CASE_FIXTURE(Fixture, "a batch is handled when its time is over, full or not") {
    Worker worker(uri, options());
    std::chrono::milliseconds time = 150ms;
    SUBCASE("after its first job has waited") {}
    SUBCASE("at once") { time = 0ms; }
    worker.handle_batch<Raw>("q", write_down_batch(), {.size = 100, .time = time});
    push_jobs({"a", "b"});
    const auto begun = std::chrono::steady_clock::now();
    const Running running(worker);
    CHECK(has_handled_batches({{"a", "b"}}));
    CHECK(std::chrono::steady_clock::now() - begun >= time);
    CHECK(eventually([this] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "each job of a batch is settled on its own") {
    Worker worker(uri, options());
    worker.handle_batch<Raw>(
        "q",
        [](JobBatch<Raw> batch) {
            for (JobContext<Raw>& job : batch) {
                if (job->payload.bytes == "fails") {
                    job.fail("no such user");
                } else if (job->payload.bytes == "dies") {
                    job.guard()->bury("no such user");
                }
            }
        },
        {.size = 4, .time = 1h}, much_later());
    push_jobs({"a", "fails", "dies", "b"});
    const Running running(worker);
    CHECK(eventually([&] { return worker.statistics().succeeded == 2; }));
    CHECK(eventually([&] { return worker.statistics().settled == 1; }));
    REQUIRE(eventually([this] { return held_jobs().empty(); }));
    REQUIRE(put_off().size() == 1);
    CHECK(put_off().front().payload.bytes == "fails");
    CHECK(put_off().front().last_error == "no such user");
    CHECK(redis.llen(dead) == 1);
    CHECK(jobs().empty());
    CHECK(eventually([&] { return worker.statistics().failed == 1; }));
}

TEST_CASE_FIXTURE(Fixture, "what a handler of batches throws is the failure of all jobs that it "
                           "has not settled") {
    Worker worker(uri, options());
    worker.handle_batch<Raw>(
        "q",
        [](JobBatch<Raw> batch) {
            batch[0].guard()->ack();
            batch[1].fail("for a reason of its own");
            throw std::runtime_error("no such table");
        },
        {.size = 3, .time = 1h}, much_later());
    push_jobs({"a", "b", "c"});
    const Running running(worker);
    REQUIRE(eventually([this] { return put_off().size() == 2; }));
    CHECK(eventually([this] { return held_jobs().empty(); }));
    for (const Job<Raw>& job : put_off()) {
        CHECK(job.last_error ==
              (job.payload.bytes == "b" ? "for a reason of its own" : "no such table"));
        CHECK(job.attempt == 2);
    }
    CHECK(jobs().empty());
}

TEST_CASE_FIXTURE(Fixture, "an expired job is not in a batch") {
    Worker worker(uri, options());
    worker.handle_batch<Raw>("q", write_down_batch(), {.size = 3, .time = 1h});
    push_jobs({"a"});
    Job<Raw> late = make_job(Raw{"late"});
    late.expires_at = job_time() - 1min; // Redis' clock, as the worker knows it, may be behind
    push({bytes_of(late)});
    push_jobs({"b"});
    const Running running(worker);
    CHECK(has_handled_batches({{"a", "b"}}));
    CHECK(eventually([this] { return nothing_left(); }));
    CHECK(diary.count(WorkerEventKind::expired) == 1);
}

TEST_CASE_FIXTURE(Fixture, "a batch that has begun is completed after its thread was elsewhere") {
    const Gate gate;
    Worker worker(uri, options());
    worker.handle_batch<Raw>("q", write_down_batch(), {.size = 3, .time = 1h})
        .handle<Raw>("other", [=](const Raw&) { gate.pass(); });
    const Running running(worker);
    REQUIRE(so_many_wait(2));
    push_jobs({"a"});
    REQUIRE(eventually([this] { return held_jobs() == Texts{"a"}; }));
    REQUIRE(so_many_wait(2)); // one that is only about to wait would get what comes
    push_jobs({"x"}, "other");
    REQUIRE(gate.reached());
    REQUIRE(so_many_wait(0));
    push_jobs({"b", "c"});
    CHECK(held_jobs() == Texts{"a"});
    gate.open();
    CHECK(has_handled_batches({{"a", "b", "c"}}));
    CHECK(eventually([this] { return nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "a batch whose time is over while no thread is free is handled by the "
                           "next one that is") {
    const Gate gate;
    Worker worker(uri, options());
    worker.handle_batch<Raw>("q", write_down_batch(), {.size = 3, .time = 200ms})
        .handle<Raw>("other", [=](const Raw&) { gate.pass(); });
    const Running running(worker);
    REQUIRE(so_many_wait(2));
    push_jobs({"a"});
    REQUIRE(eventually([this] { return held_jobs() == Texts{"a"}; }));
    push_jobs({"x"}, "other");
    REQUIRE(gate.reached());
    CHECK_FALSE(eventually([this] { return batches.size() > 0; }, 250ms));
    gate.open();
    CHECK(has_handled_batches({{"a"}}));
}

TEST_CASE_FIXTURE(Fixture,
                  "a batch that is incomplete when the worker stops is requeued unchanged") {
    Worker worker(uri, options());
    QueueOptions of_queue;
    SUBCASE("fetched one by one") {}
    SUBCASE("fetched together") { of_queue.prefetch = 4; }
    worker.handle_batch<Raw>("q", write_down_batch(), {.size = 10, .time = 1h}, of_queue);
    push_jobs({"a", "b", "c"});
    const Texts before = waiting();
    Running running(worker);
    REQUIRE(eventually([this] { return held_jobs() == Texts{"a", "b", "c"}; }));
    CHECK(running.stop() == 0);
    CHECK(waiting() == before);
    CHECK(nobody_left());
    CHECK(batches.size() == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "a batch whose handler does not end in time goes back as it was, but for "
                  "what was settled") {
    const Gate gate;
    WorkerOptions impatient = options();
    impatient.stop_timeout = 50ms;
    Worker worker(uri, impatient);
    worker.handle_batch<Raw>("q",
                             [=](JobBatch<Raw> batch) {
                                 batch[1].guard()->ack();
                                 gate.pass();
                             },
                             {.size = 3, .time = 1h});
    push_jobs({"a", "b", "c", "d"});
    Texts before = waiting();
    Running running(worker);
    REQUIRE(gate.reached());
    CHECK(running.stop() == 1);
    before.erase(before.begin() + 1);
    CHECK(waiting() == before);
    CHECK(worker.statistics().requeued == 2);
    gate.open();
    CHECK(eventually([&] { return worker.running().empty(); }));
    CHECK(waiting() == before);
}

TEST_CASE_FIXTURE(Fixture, "no more is fetched than a batch lacks") {
    const Gate gate;
    Worker worker(uri, options());
    worker.handle_batch<Raw>("q", [=](JobBatch<Raw>) { gate.pass(); }, {.size = 4, .time = 1h});
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(eventually([this] { return held_jobs() == Texts{"a"}; }));
    push_jobs({"b", "c", "d", "e", "f"});
    REQUIRE(gate.reached());
    CHECK(held_jobs() == Texts{"a", "b", "c", "d"});
    CHECK(jobs() == Texts{"e", "f"});
    gate.open();
    CHECK(eventually([this] { return held_jobs() == Texts{"e", "f"}; }));
}

TEST_CASE_FIXTURE(Fixture, "the acks of a batch go to Redis in one request, before the handler for "
                           "at most once") {
    Worker worker(uri, options());
    QueueOptions of_queue;
    std::vector<std::size_t> held;
    std::promise<void> looked; // with the client that the test goes on to use
    std::size_t expected = 100;
    SUBCASE("behind the handler") {}
    SUBCASE("behind the handler, fetched ahead") { of_queue.prefetch = 100; }
    SUBCASE("before the handler") {
        of_queue.guarantee = orizuru::Guarantee::at_most_once;
        expected = 0;
    }
    worker.handle_batch<Raw>(
        "q",
        [&](JobBatch<Raw>) {
            held.push_back(held_jobs().size());
            looked.set_value();
        },
        {.size = 100, .time = 1h}, of_queue);
    push_jobs(Texts(100, "a"));
    redis.command({"CONFIG", "RESETSTAT"});
    Running running(worker);
    REQUIRE(looked.get_future().wait_for(patience) == std::future_status::ready);
    REQUIRE(eventually([&] { return worker.statistics().succeeded == 100; }));
    CHECK(eventually([this] { return held_jobs().empty(); }));
    const std::string calls = redis.command({"INFO", "commandstats"}).text;
    CHECK(running.stop() == 0);
    CHECK(held == std::vector{expected});
    const auto scripts = [&](const std::string& name) {
        const auto at = calls.find("cmdstat_" + name + ":calls=");
        return at == std::string::npos ? 0 : std::stoi(calls.substr(calls.find('=', at) + 1));
    };
    CHECK(scripts("evalsha") + scripts("eval") < 20);
}

TEST_CASE_FIXTURE(Fixture,
                  "a batch whose acks come too late is told, and not handled at most once") {
    orizuru::GarbageCollector collector(uri, "q", {.grace = 0ms});
    const Gate gate;
    Worker worker(uri, options());
    QueueOptions of_queue{.lease = 300ms, .prefetch = 6};
    Texts lost{"d", "e", "f"};
    SUBCASE("at least once: what is under way") { lost = {"a", "b", "c", "d", "e", "f"}; }
    SUBCASE("at most once: what has not begun") {
        of_queue.guarantee = orizuru::Guarantee::at_most_once;
    }
    worker.handle_batch<Raw>(
        "q",
        [&](JobBatch<Raw> batch) {
            batches.add(payloads_in(batch));
            gate.pass();
        },
        {.size = 3, .time = 1h}, of_queue);
    push_jobs({"a", "b", "c", "d", "e", "f"});
    const Running running(worker);
    REQUIRE(gate.reached());
    REQUIRE(reclaimed_by(collector) == lost.size());
    for (const std::string list : {"orizuru:{q}:suspects", "q"}) { // others have them
        while (redis.llen(list) > 0) {
            redis.command({"LMOVE", list, "elsewhere", "RIGHT", "LEFT"});
        }
    }
    gate.open();
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::lost) > 0; }));
    push_jobs({"x", "y", "z"});
    CHECK(has_handled_batches({{"a", "b", "c"}, {"x", "y", "z"}}));
    CHECK(jobs("elsewhere") == lost);
    CHECK(eventually([this] { return nothing_left(); }));
}

} // namespace worker_batches_test
