// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a worker costs while nothing happens: its connections and threads, its own and Redis' CPU
// time as shares of a core, and the commands a second, those that scripts run included.
//
// usage: idle [QUEUES] [CONCURRENCY] [SECONDS]

#include "benchmark/server_cost.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/worker.hpp>

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <stop_token>
#include <string>
#include <thread>

namespace {

using orizuru::benchmark::ServerCost;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;

double own_cpu_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

long own_threads() {
    using Entries = std::filesystem::directory_iterator;
    return std::distance(Entries("/proc/self/task"), Entries());
}

/// With all defaults: schedulers, collectors, pauses.
void measure(int queues, int concurrency, std::chrono::seconds time) {
    const RedisServer server;
    RedisClient redis(server.uri());
    const long threads_before = own_threads();
    orizuru::Worker worker(server.uri(), {.concurrency = concurrency});
    for (int i = 0; i < queues; ++i) {
        worker.handle<orizuru::Raw>("q" + std::to_string(i), [](const orizuru::Raw&) {});
    }
    const std::jthread running([&](const std::stop_token& token) { worker.run(token); });
    std::this_thread::sleep_for(std::chrono::seconds(15)); // first passes, first beats
    const double cpu = own_cpu_seconds();
    ServerCost cost(redis);
    std::this_thread::sleep_for(time);
    const double seconds = cost.seconds();
    const double own = 100 * (own_cpu_seconds() - cpu) / seconds;
    const double commands = cost.commands_per_second();
    std::printf("%d queues, concurrency %d: %.0f connections, %ld threads, %.1f commands/s, "
                "%.3f %% of a core, Redis' %.3f %%\n",
                queues, concurrency, cost.figure("clients", "connected_clients") - 1,
                own_threads() - threads_before, commands, own, cost.percent_of_core());
    cost.print_commands();
}

} // namespace

int main(int count, char** arguments) {
    const auto number = [&](int index, int otherwise) {
        return count > index ? std::atoi(arguments[index]) : otherwise;
    };
    const int concurrency = number(2, 10);
    const std::chrono::seconds time(number(3, 30));
    for (const int queues : {1, number(1, 50)}) {
        measure(queues, concurrency, time);
    }
}
