// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The defects of a worker of fibers, numbered as in its report. Each has a test that fails when the
// defect is put back.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>

namespace jiggler_defects_test {

using namespace std::chrono_literals;
using orizuru::GarbageCollector;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::make_job;
using orizuru::Producer;
using orizuru::push_after;
using orizuru::Raw;
using orizuru::Scheduler;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::Child;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Defect : WorkerFixture {
    Worker worker{uri, options()};
    GarbageCollector collector{uri, "q", {.grace = std::chrono::milliseconds(0), .blamed = 10}};
};

TEST_CASE_FIXTURE(Defect, "1: the queue that was given first is served first, and the heavier one "
                          "is the more often first") {
    WorkerOptions chosen = options();
    push_jobs(Texts(50, "heavy"), "heavy");
    push_jobs(Texts(50, "q"));
    SUBCASE("strict") {}
    SUBCASE("weighted") { chosen.order = orizuru::QueueOrder::weighted; }
    Worker ordered(uri, chosen);
    ordered.handle<Raw>("heavy", write_down(), {.weight = 1'000'000})
        .handle<Raw>("q", write_down(), {.weight = 1});
    const Running running(ordered);
    REQUIRE(eventually([this] { return handled.size() == 100; }));
    const Texts begun = handled.all();
    CHECK(std::count(begun.begin(), begun.begin() + 50, "heavy") >= 45);
}

TEST_CASE_FIXTURE(Defect, "2: among many keys no live worker is missed, nor robbed") {
    const Gate gate;
    worker.handle<Raw>("q", [=](const Raw&) { gate.pass(); }, {.lease = 1s});
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    const std::string worker_id = only_id();
    // Most pages of the scan are empty.
    redis.command({"EVAL", "for i = 1, 5000 do redis.call('SET', 'other:' .. i, '') end", "0"});
    // It is not registered, so only a scan can find it.
    add_dead_consumer("worker:host:1:0123456789abcdef", {bytes_of(make_job(Raw{"b"}))});
    redis.del(consumers);
    redis.command({"SADD", consumers, worker_id});
    CHECK(eventually([&] { return collector.collect().reclaimed == 1; }));
    CHECK(jobs("orizuru:{q}:suspects") == Texts{"b"}); // the worker takes it from there
    CHECK(held_jobs() == Texts{"a"});
    gate.open();
    CHECK(eventually([&] { return worker.statistics().succeeded == 2; }));
    CHECK(eventually([this] { return nothing_left(); }));
    CHECK(running.stop() == 0);
    CHECK(diary.count(WorkerEventKind::lost) == 0);
    CHECK(worker.statistics().succeeded == 2);
}

TEST_CASE_FIXTURE(Defect, "3: what is due stays scheduled until it is in the queue") {
    Producer<Job<Raw>> producer(uri, "q");
    push_after(producer, 20ms, make_job(Raw{"a"}));
    redis.set("q", "a string");
    Scheduler scheduler(uri, "q");
    REQUIRE(put_off().size() == 1);
    CHECK(eventually([&] {
        try {
            scheduler.move_due();
            return false;
        } catch (const orizuru::ReplyError& error) {
            return error.code() == "WRONGTYPE";
        }
    }));
    CHECK(put_off().size() == 1);
    redis.del("q");
    CHECK(eventually([&] { return scheduler.move_due() == 1; }));
    CHECK(jobs() == Texts{"a"});
    CHECK(put_off().empty());
}

TEST_CASE_FIXTURE(Defect, "4: a failed job is not acked before it is put off") {
    redis.set("orizuru:{q}:scheduled", "a string");
    worker.handle<Raw>(
        "q", [](const Raw&) { throw std::runtime_error("no"); }, much_later());
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(eventually([this] { return diary.count(WorkerEventKind::unsettled) > 0; }));
    CHECK(held_jobs() == Texts{"a"});
    redis.del("orizuru:{q}:scheduled");
    CHECK(eventually([this] { return put_off().size() == 1 && held_jobs().empty(); }));
}

TEST_CASE_FIXTURE(Defect, "5: what nobody can read does not come again and again") {
    worker.handle<Raw>("q", write_down());
    push({"\xc1"});
    push_jobs({"a"});
    const Running running(worker);
    CHECK(has_handled({"a"}));
    CHECK(eventually([this] { return held_jobs().empty(); }));
    CHECK(redis.llen(dead) == 1);
    CHECK(redis.llen(unack) == 0);
    CHECK(jobs().empty());
}

TEST_CASE_FIXTURE(Defect, "5: what kills its workers is counted, and given up at last") {
    push_jobs({"a"});
    for (int death = 1; death <= 4; ++death) {
        Child child([this] {
            Worker own(uri, options());
            own.handle<Raw>("q", [](const Raw&) { ::raise(SIGKILL); });
            return own.run();
        });
        CHECK(child.status() == -1);
        forget_heartbeat(only_id());
        CHECK(collector.collect().consumers == 1);
    }
    CHECK(redis.llen(dead) == 1);
    CHECK(jobs().empty());
}

TEST_CASE_FIXTURE(Defect, "6: a worker that was away for too long cannot settle what others have") {
    std::atomic<bool> valid{true};
    const Gate gate;
    worker.handle<Raw>("q",
                       [&, gate](JobContext<Raw>& context) {
                           gate.pass();
                           valid = context.lease_valid();
                       },
                       {.lease = 2s});
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(gate.reached());
    CHECK(reclaimed_by(collector) == 1); // fenced in the same step
    redis.command({"RENAME", "q", "with another one"});
    CHECK(eventually([this] { return diary.has_lease_lost(); }));
    gate.open();
    CHECK(eventually([this] { return diary.count(WorkerEventKind::lost) == 1; }));
    CHECK_FALSE(valid);
    CHECK(jobs("with another one") == Texts{"a"});
}

TEST_CASE_FIXTURE(
    Defect, "7: a worker that stops requeues jobs that do not end, whatever other workers run") {
    WorkerOptions hurried = options(); // without scheduler and collector
    hurried.stop_timeout = 0ms;
    Worker stopping(uri, hurried);
    const Gate gate;
    stopping.handle<Raw>("q", [=](const Raw&) { gate.pass(); });
    push_jobs({"a", "b"});
    const Texts before = waiting();
    Running running(stopping);
    REQUIRE(gate.reached());
    CHECK(running.stop() == 1);
    CHECK(waiting() == before);
    gate.open();
    CHECK(eventually([&] { return stopping.running().empty(); }));
}

TEST_CASE_FIXTURE(Defect, "8: the dead list keeps as many as it says, not one less") {
    worker.handle<Raw>("q", [](const Raw&) { throw std::runtime_error("no"); },
                       {.retry = {.max_attempts = 1}, .dead = {.most = 3}});
    push_jobs({"a", "b", "c", "d", "e"});
    const Running running(worker);
    REQUIRE(eventually([&] { return worker.statistics().died == 5; }));
    REQUIRE(eventually([this] { return redis.llen(dead) == 3; }));
    const auto entries = orizuru::DeadList(uri, "q").list(0, 10);
    Texts payloads;
    for (const auto& entry : entries) {
        payloads.push_back(job_of(entry.payload).payload.bytes);
    }
    CHECK(payloads == Texts{"e", "d", "c"});
    CHECK(orizuru::QueueOptions().dead.most == 10'000);
    redis.command({"EVAL", "for i = 1, 10001 do redis.call('LPUSH', KEYS[1], i) end", "1",
                   "orizuru:{other}:dead"});
    CHECK(orizuru::DeadList(uri, "other").trim() == 1);
    CHECK(redis.llen("orizuru:{other}:dead") == 10'000);
}

TEST_CASE_FIXTURE(Defect, "9: a failed job is counted as failed, and only so; a failed fetch is "
                          "told and tried again") {
    worker.handle<Raw>(
        "q", [](const Raw&) { throw std::runtime_error("no"); }, much_later());
    redis.set("q", "a string");
    const Running running(worker);
    REQUIRE(eventually([this] { return diary.count(WorkerEventKind::fetch_failed) > 0; }));
    CHECK(diary.of(WorkerEventKind::fetch_failed).front().detail.find("WRONGTYPE") !=
          std::string::npos);
    redis.del("q");
    push_jobs({"a"});
    CHECK(eventually([&] { return worker.statistics().failed == 1; }));
    CHECK(worker.statistics().succeeded == 0);
}

TEST_CASE_FIXTURE(Defect, "10: emptying a queue takes nothing from its workers") {
    const Gate gate;
    worker.handle<Raw>(
        "q",
        [=](const Raw&) {
            gate.pass();
            throw std::runtime_error("no");
        },
        much_later());
    push_jobs({"a", "b"});
    const Running running(worker);
    REQUIRE(gate.reached());
    redis.del("q");
    orizuru::DeadList(uri, "q").purge();
    CHECK(held_jobs() == Texts{"a"});
    gate.open();
    CHECK(eventually([this] { return put_off().size() == 1; }));
}

} // namespace jiggler_defects_test
