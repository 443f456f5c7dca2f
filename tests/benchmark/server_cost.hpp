// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What clients cost a Redis, from its own figures.

#pragma once

#include "support/redis_client.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace orizuru::benchmark {

/// From its construction on.
class ServerCost {
  public:
    explicit ServerCost(test::RedisClient& redis) : m_redis(redis) {
        m_redis.command({"CONFIG", "RESETSTAT"});
        m_cpu = cpu_seconds();
    }

    [[nodiscard]] double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - m_begun).count();
    }
    [[nodiscard]] double cpu_used() { return cpu_seconds() - m_cpu; }
    [[nodiscard]] double percent_of_core() { return 100 * cpu_used() / seconds(); }
    /// Those that scripts run included.
    [[nodiscard]] double commands_per_second() {
        return figure("stats", "total_commands_processed") / seconds();
    }
    /// A field of a section of INFO.
    [[nodiscard]] double figure(const std::string& section, const std::string& name) {
        const std::string info = m_redis.command({"INFO", section}).text;
        const auto at = info.find("\n" + name + ":");
        return at == std::string::npos ? 0
                                       : std::strtod(info.c_str() + at + name.size() + 2, nullptr);
    }
    /// How often a command ran.
    [[nodiscard]] double calls(const std::string& command) {
        const std::string info = m_redis.command({"INFO", "commandstats"}).text;
        const std::string before = "cmdstat_" + command + ":calls=";
        const auto at = info.find(before);
        return at == std::string::npos ? 0 : std::atof(info.c_str() + at + before.size());
    }
    /// How often each command ran, and for how long, a second.
    void print_commands() {
        const double time = seconds();
        const std::string info = m_redis.command({"INFO", "commandstats"}).text;
        const std::string_view prefix = "cmdstat_";
        for (auto at = info.find(prefix); at != std::string::npos; at = info.find(prefix, at + 1)) {
            const auto name = at + prefix.size();
            const auto calls = info.find("calls=", name) + 6;
            const auto usec = info.find("usec=", name) + 5;
            std::printf("    %-10s %9.1f/s %9.0f us/s\n",
                        info.substr(name, info.find(':', name) - name).c_str(),
                        std::atof(info.c_str() + calls) / time,
                        std::atof(info.c_str() + usec) / time);
        }
    }

  private:
    double cpu_seconds() { return figure("cpu", "used_cpu_sys") + figure("cpu", "used_cpu_user"); }

    test::RedisClient& m_redis;
    double m_cpu = 0;
    std::chrono::steady_clock::time_point m_begun = std::chrono::steady_clock::now();
};

} // namespace orizuru::benchmark
