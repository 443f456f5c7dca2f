// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The cost of a fleet's collectors for Redis while no consumer dies: CONSUMERS living ones are
// registered, and COLLECTORS collectors run once a second each. Prints Redis' CPU time as a share
// of a core, and the commands that the collectors sent.
//
// usage: fleet [CONSUMERS] [COLLECTORS] [SECONDS]

#include "benchmark/server_cost.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/garbage_collector.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

using orizuru::GarbageCollector;
using orizuru::benchmark::ServerCost;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;

/// Writes the keys that START writes for a consumer, with a heartbeat that outlives the
/// measurement.
void register_consumers(RedisClient& redis, int count) {
    const std::string prefix = "orizuru:{q}:";
    for (int i = 0; i < count; ++i) {
        char digits[17];
        std::snprintf(digits, sizeof digits, "%016x", static_cast<unsigned>(i));
        const std::string id = "worker:host:" + std::to_string(1000 + i) + ":" + digits;
        redis.command({"SET", prefix + "heartbeat:" + id, "1", "PX", "3600000"});
        redis.command({"SADD", prefix + "consumers", id});
        redis.command(
            {"RPUSH", prefix + "processing:" + id, "orz:" + std::string(digits) + "l3600000:0"});
    }
}

/// Redis' share of a core while `collectors` threads each run a collector.
void measure(const RedisServer& server, int collectors, std::chrono::seconds time) {
    RedisClient redis(server.uri());
    std::vector<std::jthread> threads;
    for (int i = 0; i < collectors; ++i) {
        threads.emplace_back([&server, i, collectors](const std::stop_token& token) {
            // As processes, they do not begin at the same moment.
            std::this_thread::sleep_for(std::chrono::milliseconds(1000 * i / collectors));
            GarbageCollector(server.uri(), "q").run(token, std::chrono::seconds(1));
        });
    }
    std::this_thread::sleep_for(std::chrono::seconds(2)); // their first passes, with a SCAN
    ServerCost cost(redis);
    std::this_thread::sleep_for(time);
    std::printf("%3d collectors: %6.2f %% of a core\n", collectors, cost.percent_of_core());
    cost.print_commands();
}

} // namespace

int main(int count, char** arguments) {
    const auto number = [&](int index, int otherwise) {
        return count > index ? std::atoi(arguments[index]) : otherwise;
    };
    const int consumers = number(1, 1000);
    const RedisServer server;
    RedisClient redis(server.uri());
    register_consumers(redis, consumers);
    std::printf("%d consumers, each collector once a second\n", consumers);
    for (const int collectors : {0, 1, number(2, 20)}) {
        measure(server, collectors, std::chrono::seconds(number(3, 10)));
    }
}
