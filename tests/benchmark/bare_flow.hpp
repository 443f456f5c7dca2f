// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Pushes and takes at once, by hiredis alone.

#pragma once

#include "benchmark/bare_consumer.hpp"
#include "benchmark/bare_produce.hpp"
#include "benchmark/child.hpp"
#include "benchmark/latency.hpp"
#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"
#include "benchmark/resident.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orizuru::benchmark {

[[nodiscard]] inline std::uint64_t size_of(const Message& message) {
    return payload_of(message).size();
}

/// The id of a message with a large id: after the msgpack headers of an array of two and of a
/// uint64.
[[nodiscard]] inline std::uint64_t stamp_of(std::string_view payload) {
    std::uint64_t id = 0;
    for (const char byte : payload.substr(2, sizeof id)) {
        id = id << 8 | static_cast<std::uint8_t>(byte);
    }
    return id;
}

/// A producer process and a consumer process.
inline void bare_both(const Options& options) {
    const auto count = static_cast<std::size_t>(options.number("count"));
    Child child([&](const auto& await_start) {
        BareProducer producer(options.socket(), options.number("chunk"),
                              options.number("in_flight"));
        const auto payloads = encoded(some_messages());
        await_start();
        producer.push(payloads, count);
    });
    Meter meter(options.socket());
    BareConsumer consumer(options.socket(), options.number("batch"), options.number("in_flight"));
    child.await_ready();
    meter.start();
    child.start();
    consumer.take(count);
    consumer.flush();
    child.wait();
    meter.stop();
    expect(consumer.total(), first_of(0, some_messages(), count, size_of));
    meter.print(count);
}

/// Pushes one message at a time, at a rate.
inline void bare_latency(const Options& options) {
    const auto count = warm_up + static_cast<std::size_t>(options.number("count"));
    Child child([&](const auto& await_start) {
        Redis redis(options.socket());
        await_start();
        push_steadily(options.number("rate"), count, [&](const Message& message) {
            redis.command("LPUSH", queue, payload_of(message));
        });
    });
    Meter meter(options.socket());
    BareList list(options.socket());
    Latencies latencies;
    child.await_ready();
    meter.start();
    child.start();
    while (latencies.size() < count) {
        if (const Reply message = list.wait()) {
            latencies.add(stamp_of(text_of(*message)));
            list.settle(1, 1, 0);
            list.fetched();
        }
    }
    child.wait();
    meter.stop();
    meter.print(count, latencies.figures());
}

/// Rounds of a push of some messages and the taking of as many, while `waiting` others wait.
inline void bare_backlog(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const auto waiting = static_cast<std::size_t>(options.number("waiting"));
    const auto batch = static_cast<std::size_t>(options.number("batch"));
    const auto count = static_cast<std::size_t>(options.number("rounds")) * batch;
    fill(redis, waiting, 0);
    const auto messages = some_messages(batch);
    const auto payloads = encoded(messages);
    BareProducer producer(options.socket(), batch, 1);
    BareConsumer consumer(options.socket(), batch, 1);
    meter.start();
    for (std::size_t taken = 0; taken < count;) {
        producer.push(payloads, batch);
        taken += batch;
        consumer.take(taken);
    }
    consumer.flush();
    meter.stop();
    expect(consumer.total(), first_of(waiting, messages, count, size_of));
    meter.print(count);
}

/// How much memory it takes to take some messages while many others wait.
inline void bare_memory(const Options& options) {
    fill_by_child(options.socket(), options.number("waiting"));
    Meter meter(options.socket());
    const auto count = static_cast<std::size_t>(options.number("count"));
    BareConsumer consumer(options.socket(), options.number("batch"), 1);
    meter.start();
    consumer.take(count);
    consumer.flush();
    meter.stop();
    expect(consumer.total(), first_of(count, {}, count, size_of));
    meter.print(count, {{"resident", resident_bytes()}});
}

} // namespace orizuru::benchmark
