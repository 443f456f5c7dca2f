// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Jobs, taken by a Worker and by a Consumer, and messages for later, through the library.

#pragma once

#include "benchmark/jobs.hpp"
#include "benchmark/latency.hpp"
#include "benchmark/library_consumer.hpp"
#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <thread>

namespace orizuru::benchmark {

/// Takes jobs one after the other, by a Consumer.
inline void library_jobs(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Total wanted = fill_jobs(redis, options).ids;
    Consumer<Job<Message>> consumer(address_of(options), queue, consumer_options(options));
    Total total;
    meter.start();
    take(consumer, total, wanted.messages);
    flush(consumer);
    meter.stop();
    expect(total, wanted);
    meter.print(total.messages);
}

/// Takes jobs by a Worker with 10 threads, from one queue or several; includes the time to start
/// and stop it.
inline void library_worker(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Total wanted = fill_jobs(redis, options).ids;
    orizuru::Worker worker(address_of(options));
    std::atomic<std::uint64_t> messages{0};
    std::atomic<std::uint64_t> sum{0};
    const ConsumerOptions consumer = consumer_options(options);
    for (std::int64_t i = 0; i < options.number("queues"); ++i) {
        worker.handle<Message>(job_queue(i),
                               [&](const Message& message) {
                                   sum.fetch_add(message.id, std::memory_order_relaxed);
                                   if (messages.fetch_add(1, std::memory_order_relaxed) + 1 ==
                                       wanted.messages) {
                                       worker.stop();
                                   }
                               },
                               {.prefetch = consumer.prefetch, .ack = consumer.ack});
    }
    meter.start();
    worker.run();
    meter.stop();
    expect({messages, sum}, wanted);
    meter.print(messages);
}

/// How late scheduled messages come, while `waiting` others are not due.
inline void library_lateness(const Options& options) {
    const auto count = warm_up + static_cast<std::size_t>(options.number("count"));
    Redis redis(options.socket());
    Meter meter(options.socket());
    fill_schedule(redis, static_cast<std::size_t>(options.number("waiting")));
    Producer<Message> producer(address_of(options), queue);
    Consumer<Message> consumer(address_of(options), queue, consumer_options(options));
    for (const Timed& timed : timed_messages(options.number("rate"), count)) {
        push_at(producer, timed.due, timed.message);
    }
    const std::jthread scheduling(
        [&](const std::stop_token& stop) { Scheduler(address_of(options), queue).run(stop); });
    Latencies latencies;
    meter.start();
    while (latencies.size() < count) {
        auto guard = consumer.next();
        latencies.add((*guard)->id);
        ack(*guard);
    }
    meter.stop();
    meter.print(count, latencies.figures());
}

} // namespace orizuru::benchmark
