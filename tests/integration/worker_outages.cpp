// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker, and its end, while Redis does not answer.

#include "integration/queue_fixture.hpp"
#include "integration/worker_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <orizuru/job.hpp>
#include <orizuru/job_context.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

namespace worker_outages_test {

using namespace std::chrono_literals;
using orizuru::JobContext;
using orizuru::make_job;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;
using orizuru::test::Child;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::Record;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Running;
using orizuru::test::WorkerFixture;

/// With a server that may be ended.
struct Fixture : WorkerFixture {
    RedisServer server;
    RedisClient own{server.uri()};

    /// In a process, until SIGTERM; its handler does not end.
    int run(int queues, const QueueOptions& of_queue) {
        RedisClient client(server.uri()); // the parent's goes on
        WorkerOptions chosen = options();
        chosen.signals = orizuru::SignalHandling::worker;
        chosen.stop_timeout = 100ms;
        chosen.collect_interval = 10ms;
        chosen.scheduler.emplace();
        Worker worker(server.uri(), chosen);
        for (int i = 0; i < queues; ++i) {
            worker.handle<Raw>(
                "q" + std::to_string(i),
                [&](const Raw&) {
                    client.lpush("started", "x");
                    std::this_thread::sleep_for(1h);
                },
                of_queue);
        }
        return worker.run();
    }
};

TEST_CASE_FIXTURE(Fixture, "a stop is over 5 s after stop_timeout, however long the lease, when "
                           "Redis does not answer") {
    int queues = 1;
    QueueOptions of_queue{.lease = 24h};
    std::function<void(RedisServer&)> fail = &RedisServer::pause;
    SUBCASE("with many queues") { queues = 20; }
    SUBCASE("with many in hand") {
        of_queue.prefetch = 100;
        fail = &RedisServer::kill;
    }
    for (int i = 0; i < 150; ++i) {
        own.lpush("q0", bytes_of(make_job(Raw{"a"})));
    }
    Child child([&] { return run(queues, of_queue); });
    REQUIRE(eventually([&] { return own.llen("started") == 1; }));
    fail(server);
    const auto begun = std::chrono::steady_clock::now();
    child.signal(SIGTERM);
    CHECK(child.status() == 2); // the handler, and what waits for Redis
    CHECK(std::chrono::steady_clock::now() - begun < 7s);
}

TEST_CASE_FIXTURE(Fixture, "a SIGTERM that comes while a worker waits for Redis is not lost when "
                           "that is in vain") {
    server.pause();
    Child child([&] {
        ::signal(SIGTERM, SIG_DFL); // the test's own would report a crash
        RedisClient client(uri);
        Worker worker(server.uri() + "?connect_timeout=1000", WorkerOptions{.on_event = {}});
        worker.handle<Raw>("q", [](const Raw&) {});
        client.lpush("started", "x");
        try {
            return worker.run();
        } catch (const orizuru::ConnectionError&) {
            return 50;
        }
    });
    REQUIRE(eventually([this] { return redis.llen("started") == 1; }));
    std::this_thread::sleep_for(100ms); // one that comes before `run` is nobody's
    child.signal(SIGTERM);
    CHECK(child.status() == -1);
}

TEST_CASE_FIXTURE(Fixture, "who tells its progress does not wait for all others in an outage") {
    constexpr int threads = 12;
    const Gate gate;
    const Record<std::chrono::milliseconds> waited;
    Worker worker(server.uri() + "?connect_timeout=300&command_timeout=300", options(threads));
    worker.handle<Raw>("q", [=](JobContext<Raw>& job) {
        job.progress(0.1);
        gate.pass();
        const auto begun = std::chrono::steady_clock::now();
        job.progress(0.2);
        waited.add(std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - begun));
    });
    for (int i = 0; i < threads; ++i) {
        own.lpush("q", bytes_of(make_job(Raw{"a"})));
    }
    const Running running(worker);
    REQUIRE(gate.reached(threads));
    server.pause();
    gate.open();
    REQUIRE(eventually([&] { return waited.size() == threads; }, 20s));
    server.resume();
    // A turn, a connection and an answer are waited for, each for 300 ms; 12 * 300 are 3.6 s.
    CHECK(std::ranges::max(waited.all()) < 2s);
    CHECK(diary.count(WorkerEventKind::progress_failed) == threads);
}

TEST_CASE_FIXTURE(Fixture, "the guard of a job that has failed is free while Redis is asked how "
                           "often it was recovered") {
    JobContext<Raw>* context = nullptr;
    const Gate gate;
    Worker worker(server.uri(), options());
    worker.handle<Raw>(
        "q",
        [&](JobContext<Raw>& job) {
            context = &job;
            gate.pass();
            job.fail("no such user");
        },
        much_later());
    own.lpush("q", bytes_of(make_job(Raw{"a"})));
    const Running running(worker);
    REQUIRE(gate.reached());
    server.pause();
    gate.open();
    const auto end = std::chrono::steady_clock::now() + 1s;
    while (std::chrono::steady_clock::now() < end) {
        REQUIRE(context->guard_within(200ms));
        std::this_thread::sleep_for(1ms);
    }
    server.resume();
    CHECK(eventually(
        [&] {
            return own.command({"ZCARD", "orizuru:{q}:scheduled"}).integer == 1;
        },
        20s));
}

TEST_CASE_FIXTURE(Fixture, "a worker that Redis has kept from running runs when it is called "
                           "again") {
    Worker worker(server.uri(), options());
    worker.handle<Raw>("q", write_down());
    server.kill();
    CHECK_THROWS_AS(worker.run(), orizuru::ConnectionError);
    worker.handle<Raw>("r", write_down());
    CHECK_THROWS_AS(worker.run(), orizuru::ConnectionError);
    SUBCASE("after an outage") {
        server.restart();
        RedisClient(server.uri()).lpush("r", bytes_of(make_job(Raw{"a"})));
        Running running(worker);
        CHECK(has_handled({"a"}));
        CHECK(running.stop() == 0);
    }
    SUBCASE("and not when it was stopped") {
        worker.stop();
        CHECK(worker.run() == 0);
    }
}

} // namespace worker_outages_test
