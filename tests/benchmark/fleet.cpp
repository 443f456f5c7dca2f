// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The cost of a fleet's collectors for Redis while no consumer dies: CONSUMERS living ones are
// registered, and COLLECTORS collectors run once a second each. Prints Redis' CPU time as a share
// of a core, and the commands that the collectors sent.
//
// usage: fleet [CONSUMERS] [COLLECTORS] [SECONDS]

#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/garbage_collector.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using orizuru::GarbageCollector;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using Clock = std::chrono::steady_clock;

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
        redis.command({"RPUSH", prefix + "processing:" + id, "orz:" + std::string(digits) + ":0"});
    }
}

double cpu_seconds(RedisClient& redis) {
    const std::string info = redis.command({"INFO", "cpu"}).text;
    double sum = 0;
    for (const std::string_view name : {"used_cpu_sys:", "used_cpu_user:"}) {
        sum += std::strtod(info.data() + info.find(name) + name.size(), nullptr);
    }
    return sum;
}

void print_commands(RedisClient& redis, double seconds) {
    const std::string info = redis.command({"INFO", "commandstats"}).text;
    const std::string_view prefix = "cmdstat_";
    for (auto at = info.find(prefix); at != std::string::npos; at = info.find(prefix, at + 1)) {
        const auto name = at + prefix.size();
        const auto calls = info.find("calls=", name) + 6;
        const auto time = info.find("usec=", name) + 5;
        std::printf("    %-10s %9.1f/s %9.0f us/s\n",
                    info.substr(name, info.find(':', name) - name).c_str(),
                    std::atof(info.c_str() + calls) / seconds,
                    std::atof(info.c_str() + time) / seconds);
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
            GarbageCollector(server.uri(), "q", {.grace = std::chrono::milliseconds(0)})
                .run(token, std::chrono::seconds(1));
        });
    }
    std::this_thread::sleep_for(std::chrono::seconds(2)); // their first passes, with a SCAN
    redis.command({"CONFIG", "RESETSTAT"});
    const double cpu = cpu_seconds(redis);
    const auto begun = Clock::now();
    std::this_thread::sleep_for(time);
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    std::printf("%3d collectors: %6.2f %% of a core\n", collectors,
                100 * (cpu_seconds(redis) - cpu) / seconds);
    print_commands(redis, seconds);
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
