// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What TLS costs: the same work over TCP with and without it, in turns, on one CPU with Redis.
// Prints medians of messages per second and their ratio.
//
// usage: benchmark_tls [PAIRS]

#include "support/certificates.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/orizuru.hpp>
#include <orizuru/tls.hpp>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace orizuru;
using namespace orizuru::test;

void use_one_cpu() {
    cpu_set_t all;
    ::sched_getaffinity(0, sizeof all, &all);
    int first = 0;
    while (!CPU_ISSET(first, &all)) {
        ++first;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ::sched_setaffinity(0, sizeof one, &one);
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

template <class Work>
double rate(std::size_t messages, Work work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(messages) / time.count();
}

struct Job {
    const char* name;
    std::size_t messages;
    int prefetch; ///< 0: pushes them
    AckMode ack;
};

double run(const Job& job, const Endpoint& endpoint, RedisClient& redis) {
    redis.flushall();
    const std::vector<Raw> messages(job.messages, Raw{std::string(16, 'x')});
    if (job.prefetch == 0) {
        Producer<Raw> producer(endpoint, "q");
        return rate(job.messages, [&] { producer.push_all(messages); });
    }
    Producer<Raw>("unix://" + redis.command({"CONFIG", "GET", "unixsocket"}).elements.at(1).text,
                  "q")
        .push_all(messages);
    Consumer<Raw> consumer(endpoint, "q", {.prefetch = job.prefetch, .ack = job.ack});
    return rate(job.messages, [&] {
        for (std::size_t i = 0; i < job.messages; ++i) {
            if (!consumer.next(std::chrono::seconds(5)).value().ack()) {
                throw std::runtime_error("an ack came too late");
            }
        }
        if (consumer.flush() != 0) {
            throw std::runtime_error("an ack came too late");
        }
    });
}

} // namespace

int main(int count, char** arguments) {
    use_one_cpu();
    const int pairs = count > 1 ? std::atoi(arguments[1]) : 5;
    RedisServer server = tls_server();
    RedisClient redis(server.plain_uri());
    const std::uint16_t port = port_of(listen_tcp());
    redis.command({"CONFIG", "SET", "port", std::to_string(port)});
    const Endpoint plain("redis://127.0.0.1:" + std::to_string(port));
    const Endpoint secure = tls_endpoint(server.uri() + Certificates::made().trusting());
    std::printf("%-36s %12s %12s %6s\n", "on one core", "TCP", "TLS", "ratio");
    for (const Job& job : {Job{"push_all", 400'000, 0, AckMode::immediate},
                           Job{"take and ack, one by one", 20'000, 1, AckMode::immediate},
                           Job{"prefetch 100, acks deferred", 400'000, 100, AckMode::deferred},
                           Job{"prefetch 1000, acks deferred", 400'000, 1000, AckMode::deferred}}) {
        std::vector<double> over_tcp;
        std::vector<double> over_tls;
        for (int i = 0; i < pairs; ++i) {
            over_tcp.push_back(run(job, plain, redis));
            over_tls.push_back(run(job, secure, redis));
        }
        std::printf("%-36s %10.0f/s %10.0f/s %6.2f\n", job.name, median(over_tcp), median(over_tls),
                    median(over_tls) / median(over_tcp));
    }
    return 0;
}
