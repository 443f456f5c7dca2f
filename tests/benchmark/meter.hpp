// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Measures the time that passes and the CPU time of the program and of Redis, and prints them as
// one line of JSON.

#pragma once

#include "benchmark/redis.hpp"

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

namespace orizuru::benchmark {

/// Any other figures of a workload.
using Figures = std::map<std::string, double>;

/// Measures between start and stop. Both can be called again; the times add up.
class Meter {
  public:
    explicit Meter(const std::string& socket) : m_redis(socket) {}

    void start() {
        m_server -= server_seconds();
        m_client -= client_seconds();
        m_wall -= Clock::now().time_since_epoch();
    }
    void stop() {
        m_wall += Clock::now().time_since_epoch();
        m_client += client_seconds();
        m_server += server_seconds();
    }

    void print(std::uint64_t messages, const Figures& others = {}) const {
        std::cout << "{\"messages\": " << messages
                  << ", \"seconds\": " << std::chrono::duration<double>(m_wall).count()
                  << ", \"client_cpu\": " << m_client << ", \"server_cpu\": " << m_server;
        for (const auto& [name, value] : others) {
            std::cout << ", \"" << name << "\": " << value;
        }
        std::cout << "}\n";
    }

  private:
    using Clock = std::chrono::steady_clock;

    static double seconds(const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    }
    /// The CPU time of this process and of those that it has awaited.
    static double client_seconds() {
        double sum = 0;
        for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
            rusage usage{};
            ::getrusage(who, &usage);
            sum += seconds(usage.ru_utime) + seconds(usage.ru_stime);
        }
        return sum;
    }
    double server_seconds() {
        const Reply reply = m_redis.command("INFO", "cpu");
        const std::string_view info = text_of(*reply);
        double sum = 0;
        for (const std::string_view name : {"used_cpu_sys:", "used_cpu_user:"}) {
            sum += std::strtod(info.data() + info.find(name) + name.size(), nullptr);
        }
        return sum;
    }

    Redis m_redis;
    Clock::duration m_wall{};
    double m_client = 0;
    double m_server = 0;
};

} // namespace orizuru::benchmark
