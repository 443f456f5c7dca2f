// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker serves queues on all nodes of a Cluster, and follows those that move.

#include "integration/core/queue_fixture.hpp"
#include "support/cluster.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/recur.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace worker_cluster_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::JobContext;
using orizuru::JobProducer;
using orizuru::Keys;
using orizuru::Pause;
using orizuru::QueueOptions;
using orizuru::Worker;
using orizuru::WorkerEvent;
using orizuru::WorkerEventKind;
using orizuru::WorkerOptions;

const std::set<std::string> queues{"a", "b", "c", "d", "{a}too"};

/// A worker of these queues on a Cluster of three nodes.
struct ClusterWorker {
    Cluster cluster{3};
    std::mutex mutex;
    std::map<std::string, std::multiset<int>> handled;
    std::atomic<int> upkeep_failures = 0;
    orizuru::Endpoint endpoint = cluster.uri({0, 1, 2});
    Worker worker{endpoint,
                  {.concurrency = 4,
                   .signal_handling = orizuru::SignalHandling::none,
                   .recheck = 20ms,
                   .collect_interval = 200ms,
                   .on_event = [this](const WorkerEvent& event) {
                       upkeep_failures += event.kind == WorkerEventKind::upkeep_failed ? 1 : 0;
                   }}};
    QueueOptions options{.retry = {.backoff = orizuru::backoff::fixed(5ms)}};
    std::jthread running;

    void start() {
        for (const std::string& queue : queues) {
            worker.handle<int>(
                queue,
                [this, queue](int number, JobContext<int>& job) {
                    job.progress(0.5);
                    if (number % 10 == 0 && job.attempt() == 1) {
                        throw std::runtime_error("once more");
                    }
                    const std::lock_guard lock(mutex);
                    handled[queue].insert(number);
                },
                options);
        }
        running = std::jthread([this](const std::stop_token& stop) { worker.run(stop); });
    }
    /// While one node does not serve its slots, the others do.
    void serve_all_the_same() {
        for (std::size_t i = 0; i < cluster.size(); ++i) {
            cluster.client(i).command({"CONFIG", "SET", "cluster-require-full-coverage", "no"});
        }
    }
    /// The worker has seen each pause, and waits for no job.
    void await_pause() {
        for (std::size_t i = 0; i < cluster.size(); ++i) {
            RedisClient node = cluster.client(i);
            node.command({"CONFIG", "RESETSTAT"});
            CHECK(eventually([&] { return looks(node) >= 2 * queues.size(); }));
            CHECK(eventually([&] {
                return !contains(node.command({"CLIENT", "LIST"}).text, "cmd=blmove");
            }));
        }
    }
    /// Returns how often the node was asked whether a queue is paused.
    static std::size_t looks(RedisClient& node) {
        const std::string counts = node.command({"INFO", "commandstats"}).text;
        const std::string name = "cmdstat_exists:calls=";
        const auto at = counts.find(name);
        return at == std::string::npos ? 0 : std::stoul(counts.substr(at + name.size()));
    }
    std::size_t count() {
        const std::lock_guard lock(mutex);
        std::size_t sum = 0;
        for (const auto& [queue, numbers] : handled) {
            sum += numbers.size();
        }
        return sum;
    }
    void push(int first, int count) {
        for (const std::string& queue : queues) {
            JobProducer<int> jobs(endpoint, queue);
            for (int i = first; i < first + count; ++i) {
                jobs.push(i, {.delay = i % 7 == 0 ? 10ms : 0ms});
            }
        }
    }
};

TEST_CASE_FIXTURE(ClusterWorker, "a worker handles, retries and delays the jobs of all nodes") {
    std::set<std::size_t> nodes;
    for (const std::string& queue : queues) {
        nodes.insert(cluster.owner(queue));
    }
    REQUIRE(nodes.size() > 1);
    start();
    push(0, 50);
    CHECK(eventually([&] { return count() == 50 * queues.size(); }));
    running.request_stop();
    running.join();
    for (const auto& [queue, numbers] : handled) {
        CHECK(numbers.size() == 50);
        CHECK(std::set<int>(numbers.begin(), numbers.end()).size() == 50);
        CHECK(cluster.client_of(queue).llen(queue) == 0);
        CHECK_FALSE(cluster.client_of(queue).exists(orizuru::Keys(queue).consumers()));
    }
    CHECK(upkeep_failures == 0);
    CHECK(orizuru::Inspector(endpoint).queues() ==
          orizuru::test::Texts(queues.begin(), queues.end()));
}

TEST_CASE_FIXTURE(ClusterWorker, "a paused queue rests, on whichever node it is") {
    start();
    for (const std::string& queue : queues) {
        Pause(endpoint, queue).pause();
    }
    await_pause();
    push(1, 1);
    for (const std::string& queue : queues) {
        CHECK(cluster.client_of(queue).llen(queue) == 1);
        Pause(endpoint, queue).resume();
    }
    CHECK(eventually([&] { return count() == queues.size(); }));
}

TEST_CASE_FIXTURE(ClusterWorker,
                  "a worker follows its queues from node to node, and loses no job") {
    start();
    for (int round = 0; round < 6; ++round) {
        push(100 * round, 40);
        for (const std::string queue : {"a", "b"}) { // with "a" goes "{a}too"
            cluster.migrate(queue, (cluster.owner(queue) + 1) % 3);
        }
    }
    push(1000, 10);
    CHECK(eventually([&] { return count() >= 250 * queues.size(); }));
    running.request_stop();
    running.join();
    for (const auto& [queue, numbers] : handled) {
        CHECK(std::set<int>(numbers.begin(), numbers.end()).size() == 250);
        CHECK(numbers.size() == 250); // none came twice
    }
}

TEST_CASE_FIXTURE(ClusterWorker, "a worker starts although a queue begins to move meanwhile") {
    REQUIRE(cluster.owner("b") == 0);
    REQUIRE(cluster.owner("c") == 1);
    Worker two(endpoint, {.signal_handling = orizuru::SignalHandling::none});
    std::atomic<int> done = 0;
    two.handle<int>("b", [&](int) { ++done; }).handle<int>("c", [&](int) { ++done; });
    cluster.node(1).pause(); // so that the worker waits between its two queues
    std::string thrown;
    std::jthread runs([&](const std::stop_token& stop) {
        try {
            two.run(stop);
        } catch (const std::exception& error) {
            thrown = error.what();
        }
    });
    CHECK(eventually([&] { return cluster.client(0).exists(Keys("b").consumers()); }));
    bool resumed = false;
    cluster.migrate("b", 2, [&] {
        if (!std::exchange(resumed, true)) {
            cluster.node(1).resume();
            // It asks whether the queue is paused: that key may be at either node.
            CHECK(eventually([&] {
                return contains(cluster.client(0).command({"INFO", "errorstats"}).text,
                                "errorstat_ASK:");
            }));
        }
    });
    for (const std::string queue : {"b", "c"}) {
        JobProducer<int>(endpoint, queue).push(1);
    }
    CHECK(eventually([&] { return done == 2; }));
    runs.request_stop();
    runs.join();
    CHECK(thrown == "");
}

TEST_CASE_FIXTURE(ClusterWorker, "a worker's reports and counts are with their queue, wherever it "
                                 "goes") {
    start();
    push(0, 20);
    CHECK(eventually([&] { return count() >= 20 * queues.size(); }));
    orizuru::Inspector inspector(endpoint);
    const auto reported = [&](std::uint64_t succeeded) {
        return std::ranges::all_of(queues, [&](const std::string& queue) {
            const auto reports = inspector.workers(queue);
            return reports.size() == 1 && reports[0].threads == 4 &&
                   reports[0].jobs.outcomes.succeeded == succeeded;
        });
    };
    CHECK(eventually([&] { return reported(20); }));
    cluster.migrate("a", (cluster.owner("a") + 1) % 3); // with "a" goes "{a}too"
    push(100, 20);
    CHECK(eventually([&] { return reported(40); }));
    running.request_stop();
    running.join();
    for (const std::string& queue : queues) {
        const orizuru::QueueStatistics counts = inspector.counts(queue);
        CHECK(counts.outcomes.succeeded == 40);
        CHECK(counts.outcomes.failed == 4);
        const auto days = inspector.days(queue, 2); // midnight may have passed
        CHECK(days[0].outcomes.succeeded + days[1].outcomes.succeeded == 40);
        CHECK(inspector.workers(queue).empty());
    }
}

TEST_CASE_FIXTURE(ClusterWorker, "jobs recur for a queue that the worker does not serve, too") {
    worker.recur<int>("e",
                      {{.name = "each second",
                        .cron = orizuru::Cron("* * * * * *"),
                        .message = [](std::chrono::sys_seconds) { return orizuru::make_job(1); }}});
    start();
    CHECK(eventually([&] { return cluster.client_of("e").llen("e") > 0; }));
    CHECK(upkeep_failures == 0);
}

TEST_CASE_FIXTURE(ClusterWorker, "a worker keeps its leases on all nodes, and when queues move") {
    options.lease = 900ms;
    start();
    push(1, 1);
    CHECK(eventually([&] { return count() == queues.size(); }));
    const auto all_beat = [&] {
        return std::ranges::all_of(queues, [&](const std::string& queue) {
            return !cluster.client_of(queue).keys(Keys(queue).heartbeat("*")).empty();
        });
    };
    const auto keep_beating = [&] {
        const Stopwatch watch;
        std::size_t missed = 0;
        while (watch.elapsed() < 3s) {
            missed += all_beat() ? 0 : 1;
        }
        return missed;
    };
    CHECK(keep_beating() == 0);
    for (const std::string& queue : queues) {
        cluster.migrate(queue, (cluster.owner(queue) + 1) % cluster.size());
    }
    CHECK(eventually(all_beat));
    CHECK(keep_beating() == 0);
    push(2, 1);
    CHECK(eventually([&] { return count() == 2 * queues.size(); }));
}

TEST_CASE_FIXTURE(ClusterWorker, "a paused queue goes on while another node hangs") {
    start();
    push(1, 1);
    CHECK(eventually([&] { return count() == queues.size(); }));
    const std::size_t down = cluster.owner("a");
    const std::string queue = cluster.owner("b") != down ? "b" : "c";
    REQUIRE(cluster.owner(queue) != down);
    Pause pause(endpoint, queue);
    pause.pause();
    const auto consumers = [&] {
        return cluster.client_of(queue).command({"SCARD", Keys(queue).consumers()}).integer;
    };
    CHECK(eventually([&] { return consumers() == 0; }));
    serve_all_the_same();
    cluster.node(down).pause();
    pause.resume();
    JobProducer<int>(endpoint, queue).push(2);
    CHECK(holds_within(3s, [&] {
        const std::lock_guard lock(mutex);
        return handled[queue].contains(2);
    }));
    cluster.node(down).resume();
}

TEST_CASE_FIXTURE(ClusterWorker, "a node that is down holds up no queue of another node") {
    start();
    push(1, 1);
    CHECK(eventually([&] { return count() == queues.size(); }));
    const std::size_t down = cluster.owner("b");
    std::set<std::string> others;
    for (const std::string& queue : queues) {
        if (cluster.owner(queue) != down) {
            others.insert(queue);
        }
    }
    REQUIRE_FALSE(others.empty());
    serve_all_the_same();
    SUBCASE("dead") { cluster.node(down).kill(); }
    SUBCASE("silent") { cluster.node(down).pause(); }
    for (int i = 10; i < 20; ++i) {
        for (const std::string& queue : others) {
            JobProducer<int> jobs(endpoint, queue);
            const Stopwatch watch;
            jobs.push(i);
            const std::size_t wanted = static_cast<std::size_t>(i - 9);
            CHECK(eventually([&] {
                const std::lock_guard lock(mutex);
                return handled[queue].size() == 1 + wanted;
            }));
            CHECK(watch.elapsed() < 3s);
        }
    }
    if (cluster.node(down).pid() > 0) {
        cluster.node(down).resume();
    }
}

} // namespace worker_cluster_test
