// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The defects of a worker of threads, and of its paid edition, in the order of their report. Each
// has a test that fails when the defect is put back.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace sidekiq_defects_test {

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
using orizuru::test::Proxy;
using orizuru::test::Relay;
using orizuru::test::Running;
using orizuru::test::Stopwatch;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

struct Defect : WorkerFixture {
    Worker worker{uri, options()};
    GarbageCollector collector{uri, "q", {.grace = std::chrono::milliseconds(0), .blamed = 10}};

    WorkerOptions impatient() const {
        WorkerOptions chosen = options();
        chosen.stop_timeout = 20ms;
        return chosen;
    }
};

TEST_CASE_FIXTURE(Defect, "1: a job whose worker is killed comes back") {
    push_jobs({"a", "b"});
    Child child([this] {
        Worker own(uri, options());
        own.handle<Raw>("q", [](const Raw&) { ::raise(SIGKILL); });
        return own.run();
    });
    CHECK(child.status() == -1);
    CHECK(held_jobs() == Texts{"a"});
    forget_heartbeat(only_id());
    CHECK(collector.collect().reclaimed == 1);
    CHECK(jobs() == Texts{"a", "b"});
}

TEST_CASE_FIXTURE(Defect, "2: a job that cannot be requeued at a stop is not lost") {
    const Gate gate;
    Worker stopping(uri, impatient());
    stopping.handle<Raw>("q", [=](const Raw&) { gate.pass(); });
    push_jobs({"a"});
    const Texts before = waiting();
    Running running(stopping);
    REQUIRE(gate.reached());
    redis.set("q", "a string");
    CHECK(running.stop() == 1);
    CHECK(held_jobs() == Texts{"a"});
    CHECK(diary.count(WorkerEventKind::unsettled) > 0);
    redis.del("q");
    forget_heartbeat(only_id());
    CHECK(collector.collect().reclaimed == 1);
    CHECK(waiting() == before);
    gate.open();
    CHECK(eventually([&] { return stopping.running().empty(); }));
    CHECK(waiting() == before);
}

TEST_CASE_FIXTURE(Defect, "3: what is due goes from the schedule to the queue in one step") {
    Producer<Job<Raw>> producer(uri, "q");
    push_after(producer, 1ms, make_job(Raw{"a"}));
    push_after(producer, 1ms, make_job(Raw{"b"}));
    redis.command({"CONFIG", "RESETSTAT"});
    Scheduler scheduler(uri, "q");
    std::uint64_t moved = 0;
    CHECK(eventually([&] { return (moved += scheduler.move_due()) == 2; }));
    CHECK(jobs().size() == 2);
    CHECK(put_off().empty());
    // Only scripts have moved it.
    CHECK(info("commandstats", "cmdstat_eval:calls") > 0);
    CHECK(info("commandstats", "cmdstat_zrem:calls") == 0);
    CHECK(info("commandstats", "cmdstat_zpopmin:calls") == 0);
    CHECK(info("commandstats", "cmdstat_zremrangebyrank:calls") <=
          info("commandstats", "cmdstat_eval:calls"));
}

TEST_CASE_FIXTURE(Defect, "4: a retry that cannot be written loses no job") {
    redis.set("orizuru:{q}:scheduled", "a string");
    worker.handle<Raw>(
        "q", [](const Raw&) { throw std::runtime_error("no"); }, much_later());
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(eventually([this] { return diary.count(WorkerEventKind::unsettled) > 1; }));
    CHECK(held_jobs() == Texts{"a"});
    redis.del("orizuru:{q}:scheduled");
    CHECK(eventually([this] { return put_off().size() == 1 && held_jobs().empty(); }));
}

TEST_CASE_FIXTURE(Defect, "5: a job that ends while the worker stops is not also requeued") {
    for (int round = 0; round < 20; ++round) {
        redis.flushall();
        Worker stopping(uri, impatient());
        // It ends just when the time is over.
        stopping.handle<Raw>("q", [](JobContext<Raw>& context) {
            while (!context.stop_token().stop_requested()) {
                std::this_thread::sleep_for(1ms);
            }
            std::this_thread::sleep_for(20ms);
        });
        push_jobs({"a"});
        Running running(stopping);
        REQUIRE(eventually([&] { return stopping.running().size() == 1; }));
        running.stop();
        REQUIRE(eventually([&] { return stopping.running().empty(); }));
        CHECK(held_jobs().empty());
        CHECK(std::cmp_equal(redis.llen("q"), stopping.statistics().requeued));
    }
}

TEST_CASE_FIXTURE(Defect, "6: many retries do not hold up what is scheduled") {
    redis.command({"EVAL",
                   "for i = 1, 100000 do redis.call('ZADD', KEYS[1], ARGV[1] + i, "
                   "struct.pack('>I8', i) .. ARGV[2]) end redis.call('SET', KEYS[2], 100000)",
                   "2", "orizuru:{q}:scheduled", "orizuru:{q}:scheduled:sequence",
                   std::to_string(server_ms() + 3'600'000), bytes_of(make_job(Raw{"later"}))});
    WorkerOptions scheduling = options();
    scheduling.scheduler = orizuru::SchedulerOptions{};
    Worker busy(uri, scheduling);
    busy.handle<Raw>("q", write_down());
    const Running running(busy);
    REQUIRE(so_many_wait(2));
    Producer<Job<Raw>> producer(uri, "q");
    const Stopwatch stopwatch;
    push_after(producer, 50ms, make_job(Raw{"soon"}));
    CHECK(has_handled({"soon"}));
    CHECK(stopwatch.elapsed() < 2s);
}

TEST_CASE_FIXTURE(Defect, "7: a job that takes too long can be told from outside, and by itself") {
    const Gate gate;
    worker.handle<Raw>("q", [=](const Raw&) { gate.pass(); });
    const std::string id = push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    REQUIRE(worker.running().size() == 1);
    CHECK(worker.running().front().job_id == id);
    const auto since = worker.running().front().since;
    CHECK(eventually([&] { return std::chrono::steady_clock::now() - since > 20ms; }));
    gate.open();
    CHECK(running.stop() == 0);
}

TEST_CASE_FIXTURE(Defect, "8: all keys of a queue lie in one slot of a cluster") {
    worker.handle<Raw>(
        "q", [](const Raw&) { throw std::runtime_error("no"); }, much_later());
    push_jobs({"a"});
    const Running running(worker);
    REQUIRE(eventually([this] { return put_off().size() == 1; }));
    for (const std::string& key : redis.keys()) {
        CAPTURE(key);
        const bool of_the_server = key == "orizuru:queues"; // which is no more than a hint
        CHECK((of_the_server || key == "q" || key.starts_with("orizuru:{q}:")));
    }
}

TEST_CASE_FIXTURE(Defect, "9: the jobs of a dead worker come back while the others run") {
    WorkerOptions collecting = options();
    collecting.collect_interval = 50ms;
    Worker other(uri, collecting);
    other.handle<Raw>("q", write_down());
    const Running running(other);
    REQUIRE(so_many_wait(1));
    add_dead_consumer("dead", {bytes_of(make_job(Raw{"a"}))});
    // No consumer is declared dead until Redis has been up for 10 s.
    CHECK(eventually([&] { return handled.all() == Texts{"a"}; }));
}

TEST_CASE_FIXTURE(Defect, "10: a worker that is busy for long is no orphan") {
    const Gate gate;
    worker.handle<Raw>("q", [=](const Raw&) { gate.pass(); }, {.lease = 1s});
    push_jobs({"a"});
    Running running(worker);
    REQUIRE(gate.reached());
    for (int i = 0; i < 50; ++i) {
        REQUIRE(collector.collect().reclaimed == 0);
        std::this_thread::sleep_for(40ms); // two leases in all
    }
    CHECK(held_jobs() == Texts{"a"});
    gate.open();
    CHECK(running.stop() == 0);
    CHECK(worker.statistics().succeeded == 1);
    CHECK(nothing_left());
}

TEST_CASE_FIXTURE(Defect, "11: an ack that was lost is repeated while the worker runs") {
    Proxy proxy(orizuru::test::server().socket_path());
    Worker behind(proxy.uri(), options());
    const Gate gate;
    behind.handle<Raw>("q", [=, record = handled](const Raw& payload) {
        gate.pass();
        record.add(payload.bytes);
    });
    push_jobs({"a"});
    const Running running(behind);
    REQUIRE(gate.reached());
    proxy.break_all();
    gate.open();
    CHECK(eventually([this] { return nothing_left(); }));
    push_jobs({"b"});
    CHECK(has_handled({"a", "b"}));
}

TEST_CASE_FIXTURE(Defect, "12: what kills each of its workers dies itself, also where failures are "
                          "only dropped") {
    push_jobs({"a"});
    for (int death = 1; death <= 2; ++death) {
        Child child([this] {
            Worker own(uri, options());
            own.handle<Raw>("q", [](const Raw&) { ::raise(SIGKILL); },
                            {.retry = {.exhausted = orizuru::Exhausted::discard}});
            return own.run();
        });
        CHECK(child.status() == -1);
        forget_heartbeat(only_id());
        GarbageCollector strict(
            uri, "q", {.max_recoveries = 1, .grace = std::chrono::milliseconds(0), .blamed = 10});
        CHECK(strict.collect().consumers == 1);
    }
    CHECK(redis.llen(dead) == 1);
    CHECK(jobs().empty());
}

TEST_CASE_FIXTURE(Defect, "13: a job whose delivery was lost on its way is handled by the same "
                          "worker, not after its restart") {
    Proxy proxy(orizuru::test::server().socket_path());
    Worker behind(proxy.uri(), options());
    behind.handle<Raw>("q", write_down());
    const Running running(behind);
    REQUIRE(so_many_wait(1));
    // The next bytes from Redis on any waiting connection do not arrive.
    for (std::size_t connection = 0; connection < proxy.accepted(); ++connection) {
        proxy.cut_after(Relay::Direction::to_client,
                        proxy.bytes(connection, Relay::Direction::to_client), Relay::Cut::fin,
                        connection);
    }
    push_jobs({"a"});
    CHECK(eventually([this] { return handled.all() == Texts{"a"}; }));
    CHECK(proxy.cuts() > 0);
    CHECK(eventually([this] { return nothing_left(); }));
}

} // namespace sidekiq_defects_test
