// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a worker does when something is wrong: with a job, with Redis, with another worker, or with
// its options.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <stdexcept>
#include <string>

namespace worker_faults_test {

using namespace std::chrono_literals;
using orizuru::GarbageCollector;
using orizuru::Guarantee;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::make_job;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::Child;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::is_dead_entry_of;
using orizuru::test::message_of;
using orizuru::test::Running;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

void fail(const Raw& /*payload*/) { throw std::runtime_error("no such user"); }

struct Fixture : WorkerFixture {
    ~Fixture() { redis.command({"CONFIG", "SET", "maxmemory", "0"}); }

    Worker worker{uri, options()};
    GarbageCollector collector{uri, "q", {.grace = std::chrono::milliseconds(0), .blamed = 10}};

    /// The error for a queue that is refused.
    std::string refusal_of(const QueueOptions& of_queue, const std::string& queue = "mine") {
        return message_of<std::invalid_argument>([&] {
            worker.handle<Raw>(
                queue, [](const Raw&) {}, of_queue);
        });
    }
    template <class Change>
    std::string refusal_with(Change change) {
        WorkerOptions wrong = options();
        change(wrong);
        return message_of<std::invalid_argument>([&] { Worker(uri, wrong); });
    }
};

TEST_CASE_FIXTURE(Fixture,
                  "a message that is no job is buried with the reason, and reported as died") {
    std::string reason;
    std::string bytes = bytes_of(make_job(Raw{"a"}));
    SUBCASE("no envelope") {
        bytes = "\x05";
        reason = "no job envelope (the payload is no array)";
    }
    SUBCASE("an unknown version") {
        bytes[1] = '\0';
        reason = "an unknown version";
    }
    push({bytes});
    push_jobs({"b"});
    worker.handle<Raw>("q", write_down());
    const Running running(worker);
    CHECK(has_handled({"b"}));
    REQUIRE(redis.llen(dead) == 1);
    CHECK(is_dead_entry_of(redis.lrange(dead).front(), bytes));
    CHECK(contains(redis.lrange(dead).front(), reason));
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::died) == 1; }));
    CHECK(contains(diary.of(WorkerEventKind::died).front().detail, reason));
    CHECK(diary.of(WorkerEventKind::died).front().payload == bytes);
    CHECK(eventually([&] { return held_jobs().empty(); }));
    CHECK(worker.statistics().died == 1);
}

TEST_CASE_FIXTURE(Fixture, "the crash of a worker counts as a try of the jobs that it held") {
    const Job<Raw> job = make_job(Raw{"a"});
    push({bytes_of(job)});
    for (int crash = 1; crash <= 2; ++crash) {
        Child child([this] {
            worker.handle<Raw>("q", [](const Raw&) { ::raise(SIGKILL); });
            return worker.run();
        });
        REQUIRE(eventually([&] { return held_jobs() == Texts{"a"}; }));
        REQUIRE(eventually([&] { return child.ended(); }));
        forget_heartbeat(only_id());
        REQUIRE(collector.collect().reclaimed == 1);
    }
    worker.handle<Raw>("q", fail, much_later());
    const Running running(worker);
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(put_off().front().id == job.id);
    CHECK(put_off().front().attempt == 4);
    CHECK(put_off().front().first_enqueued_at == job.first_enqueued_at);
}

TEST_CASE_FIXTURE(Fixture, "a worker finds the jobs of one that died") {
    const Job<Raw> job = make_job(Raw{"a"});
    add_dead_consumer("died-before", {bytes_of(job)});
    WorkerOptions collecting = options();
    collecting.collect_interval = 20ms;
    Worker finder(uri, collecting);
    finder.handle<Raw>("q", fail, much_later());
    const Running running(finder);
    // No consumer is declared dead until Redis has been up for 10 s.
    REQUIRE(eventually([&] { return put_off().size() == 1; }));
    CHECK(put_off().front().id == job.id);
    CHECK(put_off().front().attempt == 3);
    CHECK(ids().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "at most once: a job is acked before its handler runs") {
    const Gate gate;
    QueueOptions at_most_once{.guarantee = Guarantee::at_most_once};
    SUBCASE("with immediate acks") {}
    SUBCASE("whatever acks were chosen") { at_most_once.ack = orizuru::AckMode::deferred; }
    worker.handle<Raw>(
        "q",
        [=](const Raw&) {
            gate.pass();
            throw std::runtime_error("no such user");
        },
        at_most_once);
    const std::string bytes = bytes_of(orizuru::make_job(Raw{"a"}));
    push({bytes});
    Running running(worker);
    REQUIRE(gate.reached());
    CHECK(nothing_left());
    gate.open();
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::discarded) == 1; }));
    CHECK(diary.of(WorkerEventKind::discarded).front().detail == "no such user");
    CHECK(diary.of(WorkerEventKind::discarded).front().payload == bytes);
    CHECK(running.stop() == 0);
    CHECK(nothing_left());
    CHECK(worker.statistics().failed == 1);
}

TEST_CASE_FIXTURE(Fixture, "at most once: a crash loses the job") {
    push_jobs({"a", "b"});
    Child child([this] {
        worker.handle<Raw>("q", [](const Raw&) { ::raise(SIGKILL); },
                           {.guarantee = Guarantee::at_most_once});
        return worker.run();
    });
    CHECK(child.status() == -1);
    forget_heartbeat(only_id());
    CHECK(collector.collect().reclaimed == 0);
    CHECK(jobs() == Texts{"b"});
    CHECK(held_jobs().empty());
}

TEST_CASE_FIXTURE(Fixture, "a failed job that cannot be put off stays held until it can") {
    redis.set("orizuru:{q}:scheduled", "a string");
    std::atomic<int> runs{0};
    worker.handle<Raw>(
        "q",
        [&](const Raw& payload) {
            ++runs;
            fail(payload);
        },
        much_later());
    const std::string id = push_jobs({"a"});
    const Running running(worker);
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::unsettled) >= 2; }));
    CHECK(diary.of(WorkerEventKind::unsettled).front().job_id == id);
    CHECK(diary.of(WorkerEventKind::unsettled).front().retry_in > 0ms);
    CHECK(held_jobs() == Texts{"a"});
    redis.del("orizuru:{q}:scheduled");
    CHECK(eventually([&] { return put_off().size() == 1; }));
    CHECK(eventually([&] { return held_jobs().empty(); }));
    CHECK(put_off().front().attempt == 2);
    CHECK(runs == 1);
}

TEST_CASE_FIXTURE(Fixture, "a failed job is put off when Redis' memory is full, too") {
    const Gate gate;
    worker.handle<Raw>(
        "q",
        [=](const Raw& payload) {
            gate.pass();
            fail(payload);
        },
        much_later());
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(gate.reached());
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    gate.open();
    CHECK(eventually([&] { return put_off().size() == 1; }));
    CHECK(eventually([&] { return held_jobs().empty(); }));
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    push_jobs({"b"});
    CHECK(eventually([&] { return put_off().size() == 2; }));
}

TEST_CASE_FIXTURE(Fixture, "a worker that was declared dead notices, and leaves the job alone") {
    const Gate gate;
    std::atomic<bool> valid_before{false};
    std::atomic<bool> valid{true};
    worker.handle<Raw>("q",
                       [&](JobContext<Raw>& context) {
                           valid_before = context.lease_valid();
                           gate.pass();
                           valid = context.lease_valid();
                           context.fail("too late");
                       },
                       {.lease = 2s});
    const std::string id = push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    REQUIRE(reclaimed_by(collector) == 1);
    redis.command({"RENAME", "q", "elsewhere"}); // another one has it
    REQUIRE(eventually([&] { return diary.has_lease_lost(); }));
    gate.open();
    REQUIRE(eventually([&] { return diary.count(WorkerEventKind::lost) == 1; }));
    CHECK(diary.of(WorkerEventKind::lost).front().job_id == id);
    CHECK(valid_before);
    CHECK_FALSE(valid);
    CHECK(running.stop() == 0);
    CHECK(jobs("elsewhere") == Texts{"a"});
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(Fixture, "options that cannot be are named") {
    for (const int concurrency : {0, -1, 10'001}) {
        CHECK(contains(refusal_with([=](WorkerOptions& of) { of.concurrency = concurrency; }),
                       "concurrency"));
    }
    for (const auto time : {std::chrono::milliseconds(-1), std::chrono::milliseconds::max()}) {
        CHECK(contains(refusal_with([=](WorkerOptions& of) { of.stop_timeout = time; }),
                       "stop_timeout"));
        CHECK(contains(refusal_with([=](WorkerOptions& of) { of.recheck = time; }), "recheck"));
    }
    CHECK(contains(refusal_with([](WorkerOptions& of) { of.collect_interval = 0ms; }),
                   "collect_interval"));
    CHECK(contains(refusal_with([](WorkerOptions& of) { of.name = "a b"; }), "'a b'"));
    CHECK(contains(refusal_with([](WorkerOptions& of) { of.scheduler = {.poll = 99ms}; }), "poll"));
    CHECK(contains(refusal_of({.weight = 0}), "'mine': weight"));
    CHECK(contains(refusal_of({.weight = 1'000'001}), "'mine': weight"));
    CHECK(contains(refusal_of({.lease = 99ms}), "'mine': lease"));
    CHECK(contains(refusal_of({.prefetch = 0}), "'mine': prefetch"));
    CHECK(contains(refusal_of({.max_payload = 0}), "'mine': max_payload"));
    CHECK(contains(refusal_of({.retry = {.max_attempts = 0}}), "max_attempts"));
    CHECK(contains(refusal_of({.retry = {.backoff = nullptr}}), "a backoff"));
    CHECK(contains(refusal_of({.retry = {.retry_queue = "{"}}), "'{'"));
    CHECK(contains(refusal_of({.max_recoveries = -1}), "max_recoveries"));
    CHECK(contains(refusal_of({.max_bytes_in_flight = 0}), "'mine': max_bytes_in_flight"));
    CHECK(contains(refusal_of({.dead = {.most = -1}}), "dead list"));
    CHECK(contains(refusal_of({.dead = {.oldest = -1ms}}), "dead list"));
    CHECK(contains(refusal_of({}, ""), "queue name is empty"));
    CHECK(contains(refusal_of({}, "orizuru:x"), "reserved"));
    worker.handle<Raw>("mine", [](const Raw&) {});
    CHECK(contains(refusal_of({}), "'mine' is handled already"));
    CHECK(contains(message_of<std::invalid_argument>([&] {
                       worker.handle_batch<Raw>("other", [](orizuru::JobBatch<Raw>) {},
                                                {.size = 0});
                   }),
                   "size"));
    CHECK(contains(message_of<std::invalid_argument>(
                       [&] { worker.handle<Raw>("other", std::function<void(const Raw&)>()); }),
                   "'other': the handler is empty"));
    CHECK(contains(message_of<std::invalid_argument>([&] {
                       using Handler = void (*)(orizuru::JobBatch<Raw>);
                       worker.handle_batch<Raw>("other", Handler{}, {.size = 1});
                   }),
                   "'other': the handler is empty"));
}

TEST_CASE_FIXTURE(Fixture, "a handler may be made from a null pointer and still be callable") {
    struct Handler {
        Handler(const int* number) : m_number(number) {}
        void operator()(const Raw&) const {}
        const int* m_number;
    };
    worker.handle<Raw>("q", Handler(nullptr));
    CHECK_THROWS_AS(worker.handle<Raw>("q", Handler(nullptr)), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "a worker without a queue does not run, and none runs twice") {
    CHECK(contains(message_of<std::logic_error>([&] { worker.run(); }), "without a queue"));
    worker.handle<Raw>("q", write_down());
    worker.stop();
    CHECK(worker.run() == 0);
    CHECK(contains(message_of<std::logic_error>([&] { worker.run(); }), "once"));
    CHECK(contains(message_of<std::logic_error>([&] { worker.handle<Raw>("r", write_down()); }),
                   "runs already"));
}

TEST_CASE_FIXTURE(Fixture, "a worker that one of its queues has kept from running leaves nothing, "
                           "and runs when it is called again") {
    worker.handle<Raw>("q", write_down()).handle<Raw>("r", write_down());
    redis.set("orizuru:{r}:consumers", "not a registry");
    CHECK_THROWS_AS(worker.run(), orizuru::ReplyError);
    CHECK(nobody_left());
    redis.command({"DEL", "orizuru:{r}:consumers"});
    push_jobs({"a"});
    Running running(worker);
    CHECK(has_handled({"a"}));
    CHECK(running.stop() == 0);
    CHECK(nobody_left());
}

} // namespace worker_faults_test
