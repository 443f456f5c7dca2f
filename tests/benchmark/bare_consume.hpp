// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Takes the messages of the queue, by hiredis alone.

#pragma once

#include "benchmark/bare_consumer.hpp"
#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/keys.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace orizuru::benchmark {

/// One script fetches `batch` messages and acks the batch before; `in_flight` scripts at a time.
inline void bare_consume(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Filled filled = fill(redis, options.number("count"), options.number("size"));
    BareConsumer consumer(options.socket(), options.number("batch"), options.number("in_flight"));
    meter.start();
    consumer.take(filled.sizes.messages);
    consumer.flush();
    meter.stop();
    expect(consumer.total(), filled.sizes);
    meter.print(filled.sizes.messages);
}

/// BLMOVE and then the settlement; each reply is awaited.
inline void bare_single(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Filled filled = fill(redis, options.number("count"), options.number("size"));
    BareList list(options.socket());
    Total total;
    meter.start();
    while (total.messages < filled.sizes.messages) {
        if (const Reply message = list.wait()) {
            list.settle(1, 1, 0);
            list.fetched();
            total.add(message->len);
        }
    }
    meter.stop();
    expect(total, filled.sizes);
    meter.print(total.messages);
}

/// BLMOVE and LREM, as people write it themselves: nothing notices another consumer of the list.
inline void bare_by_hand(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Filled filled = fill(redis, options.number("count"), options.number("size"));
    const std::string processing = Keys(queue).processing("by hand");
    Total total;
    meter.start();
    while (total.messages < filled.sizes.messages) {
        const Reply message = redis.command("BLMOVE", queue, processing, "RIGHT", "LEFT", "5.000");
        total.add(message->len);
        redis.command("LREM", processing, "-1", text_of(*message));
    }
    meter.stop();
    expect(total, filled.sizes);
    meter.print(total.messages);
}

/// Several consumers on one queue, each with a thread.
inline void bare_consumers(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Filled filled = fill(redis, options.number("count"), 0);
    std::deque<BareConsumer> consumers;
    for (std::int64_t i = 0; i < options.number("consumers"); ++i) {
        consumers.emplace_back(options.socket(), options.number("batch"),
                               options.number("in_flight"));
    }
    std::vector<std::thread> threads;
    meter.start();
    for (BareConsumer& consumer : consumers) {
        threads.emplace_back([&] { consumer.take_all(); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    meter.stop();
    Total total;
    for (const BareConsumer& consumer : consumers) {
        total.messages += consumer.total().messages;
        total.sum += consumer.total().sum;
    }
    expect(total, filled.sizes);
    meter.print(total.messages);
}

} // namespace orizuru::benchmark
