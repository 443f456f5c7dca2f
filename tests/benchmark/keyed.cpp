// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Jobs of a queue with keys beside those of a plain queue, one by one, in turns, and in bursts.
// Prints the median of each rate, and of the ratios within a round.
//
// usage: keyed [ROUNDS [JOBS [BURST]]]

#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/worker.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace orizuru;
using Clock = std::chrono::steady_clock;

constexpr int keys = 100;

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// Returns how many jobs a second the worker has handled.
double rate(const std::string& uri, int threads, int jobs,
            const std::function<void(Worker&, const std::function<void()>&)>& add) {
    Worker worker(uri, {.concurrency = threads,
                        .signal_handling = SignalHandling::none,
                        .on_event = [](const auto&) {}});
    std::atomic<int> done{0};
    add(worker, [&] {
        if (done.fetch_add(1, std::memory_order_relaxed) + 1 == jobs) {
            worker.stop();
        }
    });
    const auto begun = Clock::now();
    worker.run();
    return jobs / std::chrono::duration<double>(Clock::now() - begun).count();
}

double plain(const std::string& uri, int threads, int jobs) {
    test::RedisClient(uri).flushall();
    JobProducer<int>(uri, "q").push_all(std::vector<int>(static_cast<std::size_t>(jobs), 7));
    return rate(uri, threads, jobs, [](Worker& worker, const std::function<void()>& count) {
        worker.handle<int>("q", [count](int) { count(); });
    });
}

double keyed(const std::string& uri, int threads, int jobs, int burst = 1) {
    test::RedisClient(uri).flushall();
    KeyedJobProducer<int> producer(uri, "q");
    for (int key = 0; key < keys; ++key) {
        producer.push_all("customer " + std::to_string(key),
                          std::vector<int>(static_cast<std::size_t>(jobs / keys), 7));
    }
    return rate(uri, threads, jobs, [burst](Worker& worker, const std::function<void()>& count) {
        worker.handle_keyed<int>("q", [count](int) { count(); }, {}, {.burst = burst});
    });
}

} // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
    const int jobs = argc > 2 ? std::atoi(argv[2]) : 20'000;
    const int burst = argc > 3 ? std::atoi(argv[3]) : 100;
    const test::RedisServer server;
    std::printf("%d jobs of %d keys, medians of %d rounds\n", jobs, keys, rounds);
    for (const int threads : {1, 10}) {
        std::vector<double> of_plain;
        std::vector<double> of_keyed;
        std::vector<double> in_bursts;
        std::vector<double> ratios;
        for (int round = 0; round < rounds; ++round) {
            of_plain.push_back(plain(server.uri(), threads, jobs));
            of_keyed.push_back(keyed(server.uri(), threads, jobs));
            in_bursts.push_back(keyed(server.uri(), threads, jobs, burst));
            ratios.push_back(of_keyed.back() / of_plain.back());
        }
        std::printf(
            "%2d threads: plain %.1f k/s, keyed %.1f k/s, ratio %.2f, bursts of %d %.1f k/s\n",
            threads, median(of_plain) / 1000, median(of_keyed) / 1000, median(ratios), burst,
            median(in_bursts) / 1000);
    }
    return EXIT_SUCCESS;
}
