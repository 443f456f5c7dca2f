// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The queues of a worker share a link, a heartbeat and the threads that wait: what befalls one of
// them holds up no other, and nothing is forgotten meanwhile.

#include "integration/core/queue_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/processor_waits.hpp"
#include "support/proxy.hpp"

#include <orizuru/jobs/batch.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace worker_link_test {

using namespace std::chrono_literals;
using orizuru::JobBatch;
using orizuru::JobContext;
using orizuru::QueueOptions;
using orizuru::Raw;
using orizuru::Worker;
using orizuru::WorkerOptions;
using orizuru::test::eventually;
using orizuru::test::Gate;
using orizuru::test::holds_within;
using orizuru::test::ProcessorWaits;
using orizuru::test::Proxy;
using orizuru::test::Running;
using orizuru::test::server;
using orizuru::test::Texts;
using orizuru::test::time_of;
using orizuru::test::WorkerFixture;

struct Fixture : WorkerFixture {
    /// The ids of the connections whose last command was this one, the oldest first.
    std::vector<long> connections(const std::string& command) {
        std::istringstream list(redis.command({"CLIENT", "LIST"}).text);
        std::vector<long> ids;
        for (std::string line; std::getline(list, line);) {
            if (line.find(" cmd=" + command) != std::string::npos) {
                ids.push_back(std::stol(line.substr(std::string("id=").size())));
            }
        }
        std::ranges::sort(ids);
        return ids;
    }
    void kill(long connection) {
        redis.command({"CLIENT", "KILL", "ID", std::to_string(connection)});
    }
    /// The proxy accepts new connections, and passes nothing of them.
    static void hang_new_connections(Proxy& proxy) {
        for (std::size_t i = 0; i < 300; ++i) {
            proxy.cut_after(Proxy::Direction::to_server, 0, Proxy::Cut::silence,
                            proxy.accepted() + i);
        }
    }
};

TEST_CASE_FIXTURE(Fixture, "a queue that recovers while the only thread is busy is served again") {
    Worker worker(uri, options(1));
    worker.handle<Raw>("b", write_down());
    worker.handle<Raw>("q", [](const Raw&) { std::this_thread::sleep_for(3ms); });
    const Running running(worker);
    for (int round = 0; round < 5; ++round) {
        REQUIRE(so_many_wait(2));
        const std::vector<long> waits = connections("blmove");
        push_jobs({"1", "2", "3", "4"});
        kill(round == 0 ? waits.front() : waits.back()); // b's: it connects first, then last
        REQUIRE(eventually([this] { return redis.llen("q") == 0; }));
        handled.clear();
        push_jobs({"x"}, "b");
        CHECK(has_handled({"x"}));
    }
}

TEST_CASE_FIXTURE(Fixture, "a worker's name is that of each of its connections") {
    auto named = options(1);
    named.name = "mill";
    named.collect_interval = 10ms;
    Worker worker(uri, named);
    worker.handle<Raw>("q", write_down());
    const Running running(worker);
    REQUIRE(so_many_wait(1));
    push_jobs({"a"});
    REQUIRE(has_handled({"a"}));
    REQUIRE(eventually([this] { return redis.exists("orizuru:{q}:collected"); }));
    std::istringstream list(redis.command({"CLIENT", "LIST"}).text);
    int others = 0;
    for (std::string line; std::getline(list, line);) {
        others += line.find(" name=mill ") == std::string::npos ? 1 : 0;
    }
    CHECK(others == 1); // this test's own
}

TEST_CASE_FIXTURE(Fixture, "however slow the queues' on_beat is, each keeps its lease") {
    constexpr int queues = 6;
    std::array<std::atomic<int>, queues> beats{};
    Worker worker(uri, options(1));
    for (std::size_t i = 0; i < queues; ++i) {
        QueueOptions of_queue{.lease = 900ms};
        of_queue.on_beat = [&beats, i] {
            ++beats[i];
            std::this_thread::sleep_for(250ms);
        };
        worker.handle<Raw>("q" + std::to_string(i), write_down(), of_queue);
    }
    const Running running(worker);
    REQUIRE(so_many_wait(queues));
    std::size_t least = queues;
    CHECK(eventually([&] {
        least = std::min(least, redis.keys("orizuru:*heartbeat*").size());
        return std::ranges::all_of(beats, [](const auto& count) { return count >= 5; });
    }));
    CHECK(least == queues);
}

TEST_CASE_FIXTURE(Fixture, "a queue whose wait connection hangs holds up no other") {
    Proxy proxy(server().socket_path());
    Worker worker(proxy.uri(), options(2));
    for (const std::string queue : {"a", "b", "c"}) {
        worker.handle<Raw>(queue, write_down());
    }
    const Running running(worker);
    REQUIRE(so_many_wait(3));
    hang_new_connections(proxy);
    const std::size_t before = proxy.accepted();
    kill(connections("blmove").front());
    REQUIRE(eventually([&] { return proxy.accepted() > before; }));
    for (int round = 1; round <= 3; ++round) {
        for (const std::string queue : {"a", "b", "c"}) {
            push_jobs({queue}, queue);
        }
        // Sooner than the attempt to connect ends.
        CHECK(holds_within(2s, [&] { return std::cmp_greater_equal(handled.size(), 2 * round); }));
    }
    proxy.cancel_cuts();
}

TEST_CASE_FIXTURE(Fixture, "queues are served while the link is down and their waits are not") {
    Proxy proxy(server().socket_path());
    WorkerOptions chosen = options(2);
    chosen.stop_timeout = 100ms;
    std::atomic<int> batches{0};
    Worker worker(proxy.uri(), chosen);
    worker.handle_batch<Raw>("batched", [&](const JobBatch<Raw>&) { ++batches; },
                             {.size = 10, .time = 300ms});
    worker.handle<Raw>("q", write_down());
    const Running running(worker);
    REQUIRE(so_many_wait(2));
    hang_new_connections(proxy);
    for (const std::string command : {"evalsha", "eval"}) {
        for (const long connection : connections(command)) {
            kill(connection);
        }
    }
    push_jobs({"x"}, "batched");
    push_jobs({"y"});
    CHECK(holds_within(3s, [this] { return handled.size() == 1; }));
    CHECK(holds_within(3s, [&] { return batches == 1; }));
}

TEST_CASE_FIXTURE(Fixture, "a batch goes on when a slow link has answered") {
    Proxy proxy(server().socket_path(), 150ms);
    std::atomic<std::size_t> handled_together{0};
    Worker worker(proxy.uri(), options(1));
    worker.handle_batch<Raw>("q",
                             [&](const JobBatch<Raw>& batch) { handled_together = batch.size(); },
                             {.size = 3, .time = 1h});
    const Running running(worker);
    REQUIRE(so_many_wait(1));
    constexpr std::size_t link = 0;
    const auto answers = Proxy::Direction::to_client;
    proxy.cut_after(answers, proxy.bytes(link, answers), Proxy::Cut::delay, link);
    push_jobs({"x", "y", "z"}); // one comes to the wait connection, the others by the link
    CHECK(holds_within(3s, [&] { return handled_together == 3; }));
    CHECK(proxy.was_cut(link, answers));
}

TEST_CASE_FIXTURE(Fixture, "a worker of many queues that wait leaves a Redis that hangs") {
    WorkerOptions chosen = options(1);
    chosen.stop_timeout = 0ms;
    Worker worker(uri, chosen);
    std::atomic<bool> pushed{false};
    std::atomic<bool> hangs{false};
    worker.handle<Raw>("q", [&](JobContext<Raw>& job) {
        REQUIRE(eventually([&] { return pushed.load(); }));
        server().pause();
        hangs = true;
        while (!job.stop_token().stop_requested()) {
            std::this_thread::sleep_for(1ms);
        }
    });
    constexpr int others = 30;
    for (int i = 0; i < others; ++i) {
        worker.handle<Raw>("other" + std::to_string(i), write_down());
    }
    Running running(worker);
    REQUIRE(so_many_wait(1 + others));
    push_jobs({"x"});
    pushed = true;
    REQUIRE(eventually([&] { return hangs.load(); }));
    std::this_thread::sleep_for(100ms); // the waits are being ended: no thread is free
    const ProcessorWaits waits;
    CHECK(time_of([&] {
              const int left = running.stop(); // a busy machine may take the threads' last 300 ms
              CHECK((left == 0 || waits.total() > 100ms));
          }) < 2s);
    server().resume();
    CHECK(eventually([this] { return info("clients", "blocked_clients") == 0; }));
}

} // namespace worker_link_test
