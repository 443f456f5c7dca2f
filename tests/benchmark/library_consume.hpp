// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Taking what lies in the queue, through the library.

#pragma once

#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/orizuru.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace orizuru::benchmark {

[[nodiscard]] inline std::uint64_t value_of(const Message& message) noexcept { return message.id; }
[[nodiscard]] inline std::uint64_t value_of(const Raw& raw) noexcept { return raw.bytes.size(); }

[[nodiscard]] inline const Total& total_of(const Filled& filled, const Message*) noexcept {
    return filled.ids;
}
[[nodiscard]] inline const Total& total_of(const Filled& filled, const Raw*) noexcept {
    return filled.sizes;
}

[[nodiscard]] inline ConsumerOptions consumer_options(const Options& options) {
    const bool deferred = options.word("ack") == "deferred";
    return {.prefetch = static_cast<int>(options.number("batch")),
            .ack = deferred ? AckMode::deferred : AckMode::immediate};
}

template <class T>
void take(Consumer<T>& consumer, Total& total, std::uint64_t messages) {
    while (total.messages < messages) {
        auto guard = consumer.next();
        total.add(value_of(**guard));
        if (!guard->ack()) {
            throw std::runtime_error("the lease was lost");
        }
    }
}

template <class T>
void flush(Consumer<T>& consumer) {
    if (consumer.flush() != 0) {
        throw std::runtime_error("acks came too late");
    }
}

template <class T>
void library_consume_as(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Filled filled = fill(redis, options.number("count"), options.number("size"));
    const Total wanted = total_of(filled, static_cast<const T*>(nullptr));
    Consumer<T> consumer("unix://" + options.socket(), queue, consumer_options(options));
    Total total;
    meter.start();
    take(consumer, total, wanted.messages);
    flush(consumer);
    meter.stop();
    expect(total, wanted);
    meter.print(total.messages);
}

/// One message after another: `batch` and `ack` decide what goes over the wire.
inline void library_consume(const Options& options) {
    if (options.number("size") == 0) {
        library_consume_as<Message>(options);
    } else {
        library_consume_as<Raw>(options);
    }
}

} // namespace orizuru::benchmark
