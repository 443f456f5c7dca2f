// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker, and its shutdown, while Redis does not answer.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/processor_waits.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
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
using orizuru::test::contains;
using orizuru::test::Elapsed;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::ProcessorWaits;
using orizuru::test::Record;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Running;
using orizuru::test::Stopwatch;
using orizuru::test::Texts;
using orizuru::test::time_of;
using orizuru::test::WorkerFixture;

/// A fixture whose server may be killed.
struct Fixture : WorkerFixture {
    RedisServer server;
    RedisClient own{server.uri()};

    static constexpr int held_up = 100;

    /// Runs in a process until SIGTERM; its handler does not end. Returns how many threads are
    /// left, or `held_up` if the machine took the 300 ms that a worker spares for their end.
    int run(int queues, const QueueOptions& of_queue) {
        RedisClient client(server.uri()); // the parent's goes on
        WorkerOptions chosen = options();
        chosen.signal_handling = orizuru::SignalHandling::worker;
        chosen.stop_timeout = 100ms;
        chosen.collect_interval = 10ms;
        chosen.scheduler.emplace();
        Worker worker(server.uri(), chosen);
        for (int i = 0; i < queues; ++i) {
            worker.handle<Raw>(
                "q" + std::to_string(i),
                [&](const Raw&) {
                    try {
                        client.lpush("started", "x");
                    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
                        // The server has failed before its reply came.
                    }
                    std::this_thread::sleep_for(1h);
                },
                of_queue);
        }
        const ProcessorWaits waits;
        const int left = worker.run();
        return left > 1 && waits.total() > 100ms ? held_up : left;
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
    const Stopwatch stopwatch;
    child.signal(SIGTERM);
    const int left = child.status(); // the handler; threads that waited for Redis have ended
    CAPTURE(left);
    CHECK((left == 1 || left == held_up));
    CHECK(stopwatch.elapsed() < 7s);
}

/// A fixture with one worker in this process.
struct WithWorker : Fixture {
    std::unique_ptr<Worker> worker;
    std::unique_ptr<Running> running;

    /// From the stop until nothing is left of it. Checks that `run` returns 0: for the end, a
    /// worker spares 300 ms, which a busy machine may take for itself.
    Elapsed end() {
        const ProcessorWaits waits;
        return time_of([&] {
            const int left = running->stop();
            CHECK((left == 0 || waits.total() > 100ms));
            running.reset();
            worker.reset();
        });
    }
};

/// An idle worker of several queues, with its whole upkeep.
struct IdleWorker : WithWorker {
    static constexpr int queues = 5;

    void start(const std::string& where, std::chrono::milliseconds stop_timeout) {
        WorkerOptions chosen = options(3);
        chosen.stop_timeout = stop_timeout;
        chosen.collect_interval = 10ms;
        chosen.scheduler.emplace();
        worker = std::make_unique<Worker>(where, chosen);
        for (int i = 0; i < queues; ++i) {
            worker->handle<Raw>("q" + std::to_string(i), write_down());
        }
        own.lpush("q0", bytes_of(make_job(Raw{"a"})));
        running = std::make_unique<Running>(*worker);
        REQUIRE(has_handled({"a"}));
        REQUIRE(eventually([this] { // the consumers, and the schedulers' one
            return contains(own.command({"INFO", "clients"}).text,
                            "blocked_clients:" + std::to_string(queues + 1));
        }));
    }
    /// Also waits for a few of its collectors' intervals: then its upkeep waits for an answer.
    void freeze() {
        server.pause();
        std::this_thread::sleep_for(100ms);
    }
};

TEST_CASE_FIXTURE(IdleWorker, "a stop in an outage is over 1 s after stop_timeout, with all that "
                              "the worker had begun, when no handler runs") {
    start(server.uri() + "?command_timeout=5000", 500ms);
    SUBCASE("with Redis frozen") { freeze(); }
    SUBCASE("with Redis gone") { server.kill(); }
    SUBCASE("with Redis gone for a while") {
        server.kill();
        REQUIRE(eventually([this] { return diary.count(WorkerEventKind::upkeep_failed) > 0; }));
    }
    CHECK(end() < 2500ms); // not 5 s
}

TEST_CASE_FIXTURE(IdleWorker,
                  "a stop in an outage waits for Redis for one command_timeout, however "
                  "many queues there are, when no handler runs") {
    start(server.uri() + "?command_timeout=1000", 1h);
    freeze();
    CHECK(end() < 2500ms);
}

/// A worker whose handler has returned, or is to return, when Redis freezes.
struct SettlingWorker : WithWorker {
    Gate gate;

    /// Its settlements wait for Redis for longer than any test.
    void make(int concurrency = 1, const std::string& command_timeout = "60000") {
        WorkerOptions chosen = options(concurrency);
        chosen.stop_timeout = 500ms;
        worker =
            std::make_unique<Worker>(server.uri() + "?command_timeout=" + command_timeout, chosen);
    }
    void start(int jobs) {
        for (int i = 0; i < jobs; ++i) {
            own.lpush("q", bytes_of(make_job(Raw{"a"})));
        }
        running = std::make_unique<Running>(*worker);
    }
    void freeze_in_handlers(int count) {
        REQUIRE(gate.reached(count));
        server.pause();
        gate.open();
    }
    /// Checks that, once Redis answers again, each of these jobs is settled or comes again.
    void nothing_is_lost(int jobs, int settled_at_most) {
        server.resume();
        orizuru::GarbageCollector collector(server.uri(), "q", {.grace = 0ms});
        REQUIRE(eventually([&] {
            collector.collect();
            return own.command({"SCARD", "orizuru:{q}:consumers"}).integer == 0;
        }));
        const auto left = own.llen("q") + own.llen("orizuru:{q}:suspects") +
                          own.command({"ZCARD", "orizuru:{q}:scheduled"}).integer;
        CHECK(left <= jobs);
        CHECK(left >= jobs - settled_at_most);
        CHECK(own.llen("orizuru:{q}:unack") == 0);
    }
};

TEST_CASE_FIXTURE(SettlingWorker, "a stop in an outage is over 1 s after stop_timeout, with all "
                                  "threads, when handlers have returned and what is left of their "
                                  "jobs waits for Redis") {
    constexpr int jobs = 3;
    int settled_at_most = 0;
    make(jobs);
    QueueOptions of_queue = much_later();
    of_queue.lease = 2s;
    SUBCASE("an ack") {
        settled_at_most = jobs;
        worker->handle<Raw>(
            "q", [gate = gate](const Raw&) { gate.pass(); }, of_queue);
    }
    SUBCASE("the question how often a job was recovered") {
        worker->handle<Raw>(
            "q",
            [gate = gate](const Raw&) {
                gate.pass();
                throw std::runtime_error("no such user");
            },
            of_queue);
    }
    SUBCASE("the acks of a batch") {
        settled_at_most = jobs;
        worker->handle_batch<Raw>(
            "q", [gate = gate](const orizuru::JobBatch<Raw>&) { gate.pass(); },
            {.size = 1, .time = 1h}, of_queue);
    }
    start(jobs);
    freeze_in_handlers(jobs);
    CHECK(end() < 2500ms); // not 5 s
    nothing_is_lost(jobs, settled_at_most);
}

TEST_CASE_FIXTURE(SettlingWorker, "a stop in an outage is over 1 s after stop_timeout, with all "
                                  "threads, when a parked job waits for Redis") {
    make(1, "300");
    QueueOptions of_queue = much_later();
    of_queue.lease = 2s;
    worker->handle<Raw>(
        "q",
        [gate = gate](const Raw&) {
            gate.pass();
            throw std::runtime_error("no such user");
        },
        of_queue);
    start(1);
    freeze_in_handlers(1);
    REQUIRE(eventually([this] { return diary.count(WorkerEventKind::unsettled) == 1; }));
    // It is repeated on a new connection, for which the worker waits up to 5 s.
    const auto tried_again = std::chrono::steady_clock::now() +
                             *diary.of(WorkerEventKind::unsettled).front().retry_in + 50ms;
    REQUIRE(eventually([&] { return std::chrono::steady_clock::now() > tried_again; }));
    CHECK(end() < 2500ms); // not 5 s
    nothing_is_lost(1, 0);
}

TEST_CASE_FIXTURE(SettlingWorker, "a stop in an outage is over 1 s after stop_timeout, with all "
                                  "threads, when a batch is not complete") {
    make();
    worker->handle_batch<Raw>("q", [](const orizuru::JobBatch<Raw>&) {}, {.size = 5, .time = 1h},
                              {.lease = 2s});
    start(3);
    REQUIRE(eventually([this] { return own.llen("q") == 0; }));
    server.pause();
    CHECK(end() < 2500ms); // not 5 s
    nothing_is_lost(3, 0);
}

TEST_CASE_FIXTURE(SettlingWorker, "a stop in an outage counts the handlers that have not ended, "
                                  "and not the settlements") {
    const Gate other;
    std::atomic<int> begun{0};
    make(2);
    std::atomic<int> passed{0};
    worker->handle<Raw>("q",
                        [&](const Raw&) {
                            (++begun == 1 ? gate : other).pass();
                            ++passed;
                        },
                        {.lease = 2s});
    start(2);
    REQUIRE(other.reached());
    freeze_in_handlers(1);
    REQUIRE(eventually([&] { return passed == 1; }));
    CHECK(running->stop() == 1);
    CHECK(worker->running().size() == 1);
    other.open();
    CHECK(eventually([this] { return worker->running().empty(); }));
    nothing_is_lost(2, 1);
}

TEST_CASE_FIXTURE(Fixture, "a job that comes to a worker which stops while Redis is frozen is the "
                           "collector's after the lease") {
    WorkerOptions chosen = options();
    chosen.stop_timeout = 0ms;
    Worker worker(server.uri(), chosen);
    worker.handle<Raw>("q", write_down(), {.lease = 200ms});
    Running running(worker);
    REQUIRE(eventually([this] {
        return contains(own.command({"INFO", "clients"}).text, "blocked_clients:1");
    }));
    server.pause();
    auto pushing = std::async(std::launch::async, [this] {
        return RedisClient(server.uri()).lpush("q", bytes_of(make_job(Raw{"a"})));
    });
    CHECK(running.stop() == 0);
    server.resume();
    CHECK(pushing.get() == 1);
    CHECK(handled.size() == 0);
    orizuru::GarbageCollector collector(server.uri(), "q", {.grace = 0ms});
    CHECK(eventually([&] {
        collector.collect();
        return own.llen("q") == 1 && own.command({"SCARD", "orizuru:{q}:consumers"}).integer == 0;
    }));
    CHECK(payloads_of(own.lrange("q")) == Texts{"a"});
}

/// The process has a handler of its own for this signal.
bool catches(pid_t process, int signal) {
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("SigCgt:")) {
            return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1U) != 0;
        }
    }
    return false;
}

TEST_CASE_FIXTURE(Fixture, "a SIGTERM that comes while a worker waits for Redis is not lost when "
                           "that is in vain") {
    server.pause();
    Child child([&] {
        ::signal(SIGTERM, SIG_DFL); // the test's own would report a crash
        RedisClient client(uri);
        Worker worker(server.uri() + "?connect_timeout=60000", WorkerOptions{.on_event = {}});
        worker.handle<Raw>("q", [](const Raw&) {});
        client.lpush("started", "x");
        try {
            return worker.run();
        } catch (const orizuru::ConnectionError&) {
            return 50;
        }
    });
    REQUIRE(eventually([this] { return redis.llen("started") == 1; }));
    // A signal that comes before `run` has no handler.
    REQUIRE(eventually([&] { return catches(child.pid(), SIGTERM); }));
    child.signal(SIGTERM);
    server.kill();
    CHECK(child.status() == -1);
}

TEST_CASE_FIXTURE(Fixture,
                  "a job that publishes its progress does not wait for all others in an outage") {
    constexpr int threads = 12;
    const Gate gate;
    const Record<Elapsed> waited;
    Worker worker(server.uri() + "?connect_timeout=300&command_timeout=300", options(threads));
    worker.handle<Raw>("q", [=](JobContext<Raw>& job) {
        job.progress(0.1);
        gate.pass();
        const Stopwatch stopwatch;
        job.progress(0.2);
        waited.add(stopwatch.elapsed());
    });
    for (int i = 0; i < threads; ++i) {
        own.lpush("q", bytes_of(make_job(Raw{"a"})));
    }
    const Running running(worker);
    REQUIRE(gate.reached(threads));
    const std::size_t before = diary.count(WorkerEventKind::progress_failed);
    server.pause();
    gate.open();
    REQUIRE(eventually([&] { return waited.size() == threads; }));
    server.resume();
    // It waits for a turn, a connection and an answer, 300 ms each; 12 * 300 ms would be 3.6 s.
    for (const Elapsed& one : waited.all()) {
        CHECK(one < 2s);
    }
    CHECK(diary.count(WorkerEventKind::progress_failed) - before == threads);
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
    CHECK(eventually([&] { return own.command({"ZCARD", "orizuru:{q}:scheduled"}).integer == 1; }));
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
