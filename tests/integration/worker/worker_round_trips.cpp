// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a job costs that is handled alone: its settlement goes to Redis together with the request
// for the thread's next job, so both take one round trip.

#include "integration/worker/worker_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/keyed.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace worker_round_trips_test {

using namespace orizuru::test;
using orizuru::AckMode;
using orizuru::KeyedJobProducer;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;

constexpr int many = 400;

struct Fixture : WorkerFixture {
    /// Redis has read so often from its clients, while the worker handled all jobs of `q`.
    std::int64_t reads_by(Worker& worker) {
        const auto reads = [this] {
            const std::string stats = redis.command({"INFO", "stats"}).text;
            const std::string name = "total_reads_processed:";
            return std::stoll(stats.substr(stats.find(name) + name.size()));
        };
        const std::int64_t before = reads();
        const Running running(worker);
        CHECK(eventually([this] { return done == many; }));
        return reads() - before;
    }
    void push_all() { push_jobs(Texts(many, "x")); }
    [[nodiscard]] std::function<void(const Raw&)> count() {
        return [this](const Raw&) { ++done; };
    }

    std::atomic<int> done{0};
};

TEST_CASE_FIXTURE(Fixture, "a job is acked and the next one fetched in one round trip") {
    push_all();
    QueueOptions of_queue;
    SUBCASE("in a queue without a limit") {}
    SUBCASE("in a queue with one job at once, whose place is free once its handler has ended") {
        of_queue.concurrency = 1;
    }
    Worker worker(uri, options(1));
    worker.handle<Raw>("q", count(), of_queue);
    CHECK(reads_by(worker) < many * 3 / 2);
    CHECK(redis.llen("orizuru:{q}:unack") == 0);
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(Fixture, "a keyed job ends and the next one is fetched in one round trip") {
    KeyedJobProducer<Raw> producer(uri, "q");
    std::string key;
    SUBCASE("of another key") {
        for (const std::string each : {"a", "b", "c", "d"}) {
            producer.push_all(each, std::vector<Raw>(many / 4, Raw{"x"}));
        }
    }
    SUBCASE("of the same key") { producer.push_all("a", std::vector<Raw>(many, Raw{"x"})); }
    Worker worker(uri, options(1));
    worker.handle_keyed<Raw>("q", count());
    CHECK(reads_by(worker) < many * 3 / 2);
}

TEST_CASE_FIXTURE(Fixture, "a failed job is buried and the next one fetched in two round trips") {
    push_all();
    Worker worker(uri, options(1));
    worker.handle<Raw>("q",
                       [this](const Raw&) {
                           ++done;
                           throw std::runtime_error("no");
                       },
                       {.retry = {.max_attempts = 1}});
    CHECK(reads_by(worker) < many * 5 / 2); // it asks how often it has crashed
    CHECK(eventually([this] { return redis.llen("orizuru:{q}:dead") == many; }));
}

} // namespace worker_round_trips_test
