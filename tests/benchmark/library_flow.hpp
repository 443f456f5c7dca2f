// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Pushes and takes at once, through the library.

#pragma once

#include "benchmark/child.hpp"
#include "benchmark/latency.hpp"
#include "benchmark/library_consumer.hpp"
#include "benchmark/library_produce.hpp"
#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"
#include "benchmark/resident.hpp"

#include <orizuru/orizuru.hpp>

#include <cstddef>

namespace orizuru::benchmark {

/// A producer process and a consumer process.
inline void library_both(const Options& options) {
    const auto count = static_cast<std::size_t>(options.number("count"));
    const auto messages = some_messages();
    Child child([&](const auto& await_start) {
        Producer<Message> producer(address_of(options), queue);
        await_start();
        producer.push_all(Repeated(messages, count));
    });
    Meter meter(options.socket());
    Consumer<Message> consumer(address_of(options), queue, consumer_options(options));
    Total total;
    child.await_ready();
    meter.start();
    child.start();
    take(consumer, total, count);
    flush(consumer);
    child.wait();
    meter.stop();
    expect(total, first_of(0, messages, count, value_of));
    meter.print(count);
}

/// Pushes one message at a time, at a rate.
inline void library_latency(const Options& options) {
    const auto count = warm_up + static_cast<std::size_t>(options.number("count"));
    Child child([&](const auto& await_start) {
        Producer<Message> producer(address_of(options), queue);
        await_start();
        push_steadily(options.number("rate"), count,
                      [&](const Message& message) { producer.push(message); });
    });
    Meter meter(options.socket());
    Consumer<Message> consumer(address_of(options), queue, consumer_options(options));
    Latencies latencies;
    child.await_ready();
    meter.start();
    child.start();
    while (latencies.size() < count) {
        auto guard = consumer.next();
        latencies.add((*guard)->id);
        ack(*guard);
    }
    child.wait();
    meter.stop();
    meter.print(count, latencies.figures());
}

/// Rounds of a push of some messages and the taking of as many, while `waiting` others wait.
inline void library_backlog(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const auto waiting = static_cast<std::size_t>(options.number("waiting"));
    const auto batch = static_cast<std::size_t>(options.number("batch"));
    const auto count = static_cast<std::size_t>(options.number("rounds")) * batch;
    fill(redis, waiting, 0);
    const auto messages = some_messages(batch);
    Producer<Message> producer(address_of(options), queue);
    Consumer<Message> consumer(address_of(options), queue, consumer_options(options));
    Total total;
    meter.start();
    while (total.messages < count) {
        producer.push_all(messages);
        take(consumer, total, total.messages + batch);
    }
    flush(consumer);
    meter.stop();
    expect(total, first_of(waiting, messages, count, value_of));
    meter.print(count);
}

/// How much memory it takes to take some messages while many others wait.
inline void library_memory(const Options& options) {
    fill_by_child(options.socket(), options.number("waiting"));
    Meter meter(options.socket());
    const auto count = static_cast<std::size_t>(options.number("count"));
    Consumer<Message> consumer(address_of(options), queue, consumer_options(options));
    Total total;
    meter.start();
    take(consumer, total, count);
    flush(consumer);
    meter.stop();
    expect(total, first_of(count, {}, count, value_of));
    meter.print(count, {{"resident", resident_bytes()}});
}

} // namespace orizuru::benchmark
