// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Acks held messages, also in other orders than they came, through the library.

#pragma once

#include "benchmark/held.hpp"
#include "benchmark/library_consumer.hpp"
#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/orizuru.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace orizuru::benchmark {

/// Keeps `held` guards and acks one for each that comes.
inline void library_held(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Filled filled = fill(redis, options.number("count"), 0);
    Consumer<Message> consumer(address_of(options), queue, consumer_options(options));
    Held<MessageGuard<Message>> held(options.number("held"), options.word("pick"));
    Total total;
    meter.start();
    while (total.messages < filled.ids.messages) {
        auto guard = consumer.next();
        total.add((*guard)->id);
        held.add(std::move(*guard), ack<Message>);
    }
    held.clear(ack<Message>);
    flush(consumer);
    meter.stop();
    expect(total, filled.ids);
    meter.print(total.messages);
}

template <class T>
void library_groups_of(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const auto group = static_cast<std::size_t>(options.number("group"));
    const bool acks_only = options.word("timed") == "acks";
    Consumer<T> consumer(address_of(options), queue, consumer_options(options));
    GroupOrder order(group, options.word("order"));
    std::vector<MessageGuard<T>> guards;
    guards.reserve(group);
    Total total;
    Total wanted;
    for (std::int64_t round = 0; round < options.number("rounds"); ++round) {
        const Total filled = total_for<T>(fill(redis, group, options.number("size")));
        wanted.messages += filled.messages;
        wanted.sum += filled.sum;
        if (!acks_only) {
            meter.start();
        }
        while (guards.size() < group) {
            guards.push_back(*consumer.next());
            total.add(value_of(*guards.back()));
        }
        if (acks_only) {
            meter.start();
        }
        for (const std::size_t place : order.next()) {
            ack(guards[place]);
        }
        if (!acks_only) {
            guards.clear();
        }
        meter.stop();
        guards.clear();
    }
    expect(total, wanted);
    meter.print(total.messages);
}

/// Takes messages in groups and acks each group's one by one, each ack awaited. With timed=acks
/// only the acks are measured.
inline void library_groups(const Options& options) {
    if (options.number("size") == 0) {
        library_groups_of<Message>(options);
    } else {
        library_groups_of<Raw>(options);
    }
}

} // namespace orizuru::benchmark
