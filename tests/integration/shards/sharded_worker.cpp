// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker handles the jobs of all shards of a queue.

#include "integration/core/queue_fixture.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/sharded.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_shards.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace sharded_worker_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Endpoint;
using orizuru::Job;
using orizuru::JobContext;
using orizuru::make_job;
using orizuru::ShardedProducer;
using orizuru::Worker;

/// What a handler has got, in order: the shard and the number.
struct Handled {
    std::mutex mutex;
    std::vector<std::pair<std::string, int>> jobs;

    void note(const std::string& queue, int number) {
        const std::lock_guard lock(mutex);
        jobs.emplace_back(queue, number);
    }
    std::size_t count() {
        const std::lock_guard lock(mutex);
        return jobs.size();
    }
    std::multiset<int> numbers() {
        const std::lock_guard lock(mutex);
        std::multiset<int> all;
        for (const auto& [queue, number] : jobs) {
            all.insert(number);
        }
        return all;
    }
};

std::multiset<int> up_to(int count) {
    std::multiset<int> all;
    for (int i = 0; i < count; ++i) {
        all.insert(i);
    }
    return all;
}

TEST_CASE_FIXTURE(QueueFixture, "a worker handles the jobs of all shards, with the same options") {
    const Endpoint endpoint(server().uri());
    orizuru::create_shards(endpoint, "orders", 6);
    Handled handled;
    std::atomic<int> retried = 0;
    Worker worker(endpoint, {.concurrency = 3, .signal_handling = orizuru::SignalHandling::none});
    worker.handle_shards<int>("orders",
                              [&, first = std::make_shared<std::atomic<bool>>(true)](
                                  int number, JobContext<int>& job) mutable {
                                  *first =
                                      false; // one handler for all shards, which any thread may run
                                  if (number % 100 == 0 && job.attempt() == 1) {
                                      ++retried;
                                      throw std::runtime_error("once more");
                                  }
                                  handled.note(job.queue(), number);
                              },
                              {.retry = {.backoff = orizuru::backoff::fixed(5ms)}});
    const std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });
    ShardedProducer<Job<int>> producer(endpoint, "orders");
    for (int i = 0; i < 600; ++i) {
        i % 2 == 0 ? producer.push(make_job(i)) : producer.push(std::to_string(i), make_job(i));
    }
    CHECK(eventually([&] { return handled.count() == 600; }));
    CHECK(handled.numbers() == up_to(600));
    CHECK(retried == 6);
    std::set<std::string> queues;
    for (const auto& [queue, number] : handled.jobs) {
        queues.insert(queue);
    }
    CHECK(queues.size() == 6);
}

TEST_CASE_FIXTURE(QueueFixture, "a shard that is a thousand times fuller delays no other one") {
    const Endpoint endpoint(server().uri());
    orizuru::create_shards(endpoint, "orders", 4);
    const Texts names = orizuru::shards(endpoint, "orders");
    const std::string& full = names[1];
    orizuru::JobProducer<int>(endpoint, full).push_all(std::vector<int>(10'000, 0));
    for (const std::string& name : names) {
        if (name != full) {
            orizuru::JobProducer<int>(endpoint, name).push_all(std::vector<int>(10, 1));
        }
    }
    constexpr int prefetch = 20;
    Handled handled;
    Worker worker(endpoint, {.concurrency = 1, .signal_handling = orizuru::SignalHandling::none});
    worker.handle_shards<int>(
        "orders", [&](int number, JobContext<int>& job) { handled.note(job.queue(), number); },
        {.prefetch = prefetch});
    const std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });
    CHECK(eventually([&] { return handled.count() > 5'000; }));
    const std::lock_guard lock(handled.mutex);
    std::size_t others = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < handled.jobs.size(); ++i) {
        if (handled.jobs[i].second == 1) {
            ++others;
            last = i;
        }
    }
    CHECK(others == 30);
    // One batch of the full one before each of the others, and one that was fetched beforehand.
    CHECK(last <= 30 + 4 * prefetch);
}

TEST_CASE_FIXTURE(QueueFixture, "a queue without shards is refused at once") {
    Worker worker{Endpoint(server().uri())};
    CHECK_THROWS_WITH_AS(worker.handle_shards<int>("orders", [](int) {}),
                         doctest::Contains("queue 'orders' has no shards"), std::logic_error);
    CHECK_THROWS_AS(worker.handle_shards<int>("orders", std::function<void(int)>()),
                    std::invalid_argument);
    orizuru::create_shards(server().uri(), "orders", 4);
    const Texts names = orizuru::shards(server().uri(), "orders");
    worker.handle<int>(names[2], [](int) {});
    CHECK_THROWS_WITH_AS(worker.handle_shards<int>("orders", [](int) {}),
                         doctest::Contains("is handled already"), std::invalid_argument);
    CHECK_NOTHROW(worker.handle<int>(names[0], [](int) {})); // of the refused call nothing is left
    // Kinds come behind, so that all shards take turns.
    Worker kinds{Endpoint(server().uri())};
    kinds.handle<int>(names[1], "kind", [](int) {});
    CHECK_THROWS_AS(kinds.handle_shards<int>("orders", [](int) {}), std::invalid_argument);
    Worker behind{Endpoint(server().uri())};
    behind.handle_shards<int>("orders", [](int) {});
    CHECK_NOTHROW(behind.handle<int>(names[1], "kind", [](int) {}));
}

/// How many connections with this name the nodes have.
std::size_t connections(Cluster& cluster, const std::string& name) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        const std::string clients = cluster.client(i).command({"CLIENT", "LIST"}).text;
        for (auto at = clients.find(name); at != std::string::npos;
             at = clients.find(name, at + 1)) {
            ++count;
        }
    }
    return count;
}

/// How many connections the nodes have ever accepted.
std::uint64_t accepted(Cluster& cluster) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        const std::string info = cluster.client(i).command({"INFO", "stats"}).text;
        const std::string field = "total_connections_received:";
        count += std::stoull(info.substr(info.find(field) + field.size()));
    }
    return count;
}

TEST_CASE("a worker handles the jobs of 12 shards on 3 nodes, wherever they move") {
    Cluster cluster(3);
    const Endpoint endpoint(cluster.uri({0, 1, 2}));
    orizuru::create_shards(endpoint, "orders", 12);
    Handled handled;
    Worker worker(endpoint, {.name = "sharded-worker",
                             .concurrency = 4,
                             .signal_handling = orizuru::SignalHandling::none});
    worker.handle_shards<int>("orders",
                              [&](int number, JobContext<int>& job) {
                                  handled.note(job.queue(), number);
                                  job.progress(1);
                              },
                              {.lease = 1s});
    const std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });
    ShardedProducer<Job<int>> producer(endpoint, "orders");
    const auto push = [&](int from, int to) {
        for (int i = from; i < to; ++i) {
            producer.push(make_job(i));
        }
        const std::size_t wanted = static_cast<std::size_t>(to);
        CHECK(eventually([&] { return handled.count() == wanted; }));
    };
    // One that waits for each shard; a link, a heartbeat, upkeep and what jobs ask for each node.
    const auto few = [&] {
        return connections(cluster, "sharded-worker") <= 12 + 4 * cluster.size();
    };
    push(0, 600);
    CHECK(eventually(few));
    for (const std::string& shard : orizuru::shards(endpoint, "orders")) {
        cluster.migrate(shard, (cluster.owner(shard) + 1) % cluster.size());
    }
    push(600, 1200);
    CHECK(eventually(few));
    // Within three seconds none is made anew: each shard's upkeep has work every second.
    CHECK(eventually([&] {
        const std::uint64_t before = accepted(cluster);
        std::this_thread::sleep_for(3s);
        return accepted(cluster) == before + cluster.size(); // those that ask
    }));
    CHECK(handled.numbers() == up_to(1200));
}

} // namespace sharded_worker_test
