// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A thread asks for its next job before it awaits the settlement of the last one, so that both take
// one round trip to Redis.

#include "integration/worker/worker_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/keyed.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace worker_round_trips_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::KeyedJobProducer;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerEventKind;

struct Fixture : WorkerFixture {
    ~Fixture() { unpause(); }
    Fixture() = default;
    Fixture(const Fixture&) = delete;
    Fixture& operator=(const Fixture&) = delete;

    /// From now on Redis executes no command that writes.
    static void pause() {
        RedisClient(server().uri()).command({"CLIENT", "PAUSE", "600000", "WRITE"});
    }
    void unpause() { redis.command({"CLIENT", "UNPAUSE"}); }
    /// A handler that pauses Redis in its first job.
    [[nodiscard]] auto pausing() {
        return [this](const Raw&) {
            if (done++ == 0) {
                pause();
            }
        };
    }
    /// A connection has sent more behind a command that waits for the end of the pause.
    [[nodiscard]] bool sends_ahead() {
        std::istringstream list(redis.command({"CLIENT", "LIST"}).text);
        for (std::string line; std::getline(list, line);) {
            if (line.find(" cmd=eval") != std::string::npos &&
                line.find(" qbuf=0 ") == std::string::npos) {
                return true;
            }
        }
        return false;
    }
    /// Nothing else is sent by the worker's link: no beat.
    static QueueOptions quiet() { return {.lease = 1h}; }

    std::atomic<int> done{0};
};

TEST_CASE_FIXTURE(Fixture, "the next job is asked for before the ack of the last one is awaited") {
    QueueOptions of_queue = quiet();
    SUBCASE("in a queue without a limit") {}
    SUBCASE("in a queue with one job at once, whose place is free once its handler has ended") {
        of_queue.concurrency = 1;
    }
    push_jobs({"a", "b"});
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", pausing(), of_queue);
    const Running running(worker);
    CHECK(eventually([this] { return sends_ahead(); }));
    CHECK(done == 1);
    unpause();
    CHECK(eventually([this] { return done == 2 && nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture, "it is asked for before the end of a keyed job is awaited, of which it "
                           "may be the next one") {
    KeyedJobProducer<Raw> producer(uri, "q");
    producer.push_all("customer", std::vector{Raw{"a"}, Raw{"b"}});
    Worker worker(uri, options(1));
    worker.handle_keyed<Raw>("q", pausing(), quiet());
    const Running running(worker);
    CHECK(eventually([this] { return sends_ahead(); }));
    unpause();
    CHECK(eventually([this] { return done == 2 && nothing_left(); }));
}

TEST_CASE_FIXTURE(Fixture,
                  "with a fetch middleware the end of a job is told before the next one is "
                  "asked for") {
    push_jobs({"a", "b", "c"});
    auto chosen = options(1);
    std::atomic<int> early{0};
    chosen.fetch_middleware.emplace_back(
        [&](std::string_view /*queue*/, const std::function<bool()>& fetch) {
            early += std::cmp_less(diary.count(WorkerEventKind::succeeded), done.load()) ? 1 : 0;
            return fetch();
        });
    Worker worker(uri, chosen);
    worker.handle<Raw>("q", [this](const Raw&) { ++done; });
    const Running running(worker);
    CHECK(eventually([this] { return done == 3 && nothing_left(); }));
    CHECK(early == 0);
}

TEST_CASE_FIXTURE(Fixture, "what was fetched with a job does not slow down its ack") {
    constexpr int many = 1000;
    push_jobs(Texts(many, "x"));
    QueueOptions of_queue;
    of_queue.prefetch = 50;
    Worker worker(uri, options(1));
    worker.handle<Raw>(
        "q", [this](const Raw&) { ++done; }, of_queue);
    const Stopwatch watch;
    const Running running(worker);
    CHECK(eventually([this] { return done == many; }));
    CHECK(watch.elapsed() < 3s); // milliseconds; 10 s where each ack waits for 20 ms
}

TEST_CASE_FIXTURE(Fixture, "an ack does not hold up the job of a queue that is more urgent") {
    constexpr int many = 300;
    push_jobs(Texts(many, "x"), "low");
    Worker worker(uri, options(1));
    worker.handle<Raw>("high", [this](const Raw&) { ++done; });
    worker.handle<Raw>("low", [this](const Raw&) { push_jobs({"y"}, "high"); });
    const Stopwatch watch;
    const Running running(worker);
    CHECK(eventually([this] { return done == many; }));
    CHECK(watch.elapsed() < 2s); // milliseconds; 6 s where each ack waits for 20 ms
}

} // namespace worker_round_trips_test
