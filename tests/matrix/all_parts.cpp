// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The core, jobs, the Worker, Once, shards and the Inspector together: that they compile, and that
// nothing is lost. usage: all_parts redis-uri

#include <orizuru/buffered_producer.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/once.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/sharded.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_shards.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Order {
    std::uint64_t id = 0;
    std::vector<std::string> items;
    std::map<std::string, double> prices;
    MSGPACK_DEFINE(id, items, prices)
};

namespace {

constexpr int orders = 200;

void expect(bool condition, const char* what) {
    if (!condition) {
        throw std::logic_error(what);
    }
}

Order order(int number) {
    return {static_cast<std::uint64_t>(number), {"paper", "crane"}, {{"paper", 0.25 * number}}};
}

void core(const std::string& uri) {
    {
        orizuru::BufferedProducer<Order> producer(uri, "core");
        for (int i = 0; i < orders; ++i) {
            producer.push(order(i));
        }
        producer.flush();
    }
    orizuru::Producer<Order> next(uri, "core:next");
    orizuru::Consumer<Order> consumer(uri, "core", {.prefetch = 10});
    int acked = 0;
    int moved = 0;
    while (auto guard = consumer.next(std::chrono::milliseconds(0))) {
        const Order& got = **guard;
        expect(got.prices.at("paper") == 0.25 * static_cast<double>(got.id), "a decoded order");
        (got.id % 2 == 0 ? acked : moved) += 1;
        expect(got.id % 2 == 0 ? guard->ack() : guard->push("core:next"), "a settled message");
    }
    expect(acked == orders / 2 && moved == orders / 2 && next.size() == orders / 2, "all orders");
    orizuru::GarbageCollector(uri, "core").collect();
}

void jobs(const std::string& uri) {
    orizuru::JobProducer<Order> producer(uri, "jobs");
    orizuru::create_shards(uri, "sharded", 4);
    orizuru::ShardedProducer<orizuru::Job<Order>> sharded(uri, "sharded");
    for (int i = 0; i < orders; ++i) {
        producer.push(order(i));
        sharded.push(std::to_string(i), orizuru::make_job(order(i)));
    }
    std::atomic<int> done{0};
    orizuru::Once once(uri, "effects");
    const auto handler = [&](const Order& got, orizuru::JobContext<Order>& job) {
        if (got.id % 10 == 0 && job.attempt() == 1) {
            throw std::runtime_error("a first attempt");
        }
        ++done;
    };
    orizuru::QueueOptions options;
    options.retry.backoff = [](auto...) { return std::chrono::milliseconds(1); };
    orizuru::Worker worker(uri, {.on_event = [](const auto&) {}});
    worker.handle<Order>("jobs", handler, options)
        .handle_shards<Order>("sharded", handler, options);
    std::thread running([&] { worker.run(); });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (done < 2 * orders && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    worker.stop();
    running.join();
    expect(done == 2 * orders, "all jobs");
    expect(once.run("id", [] {}).outcome == orizuru::OnceOutcome::ran, "an effect");
    orizuru::Inspector inspector(uri);
    const orizuru::QueueState state = inspector.state("jobs");
    expect(state.waiting + state.held + state.scheduled + state.dead == 0, "no jobs are left");
    expect(inspector.counts("jobs").outcomes.succeeded >= orders, "counts");
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: all_parts redis-uri\n";
        return 2;
    }
    try {
        core(argv[1]);
        jobs(argv[1]);
        std::cout << "ok\n";
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
