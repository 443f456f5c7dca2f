// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Takes the messages of the queue, through the library.

#pragma once

#include "benchmark/library_consumer.hpp"
#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/orizuru.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <thread>

namespace orizuru::benchmark {

template <class T>
void library_consume_as(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Filled filled = fill(redis, options.number("count"), options.number("size"));
    const Total wanted = total_for<T>(filled);
    Consumer<T> consumer(address_of(options), queue, consumer_options(options));
    Total total;
    meter.start();
    take(consumer, total, wanted.messages);
    flush(consumer);
    meter.stop();
    expect(total, wanted);
    meter.print(total.messages);
}

/// One message after another; `batch` and `ack` decide which commands are sent.
inline void library_consume(const Options& options) {
    if (options.number("size") == 0) {
        library_consume_as<Message>(options);
    } else {
        library_consume_as<Raw>(options);
    }
}

/// A consumer with a thread of its own, until it is stopped.
class Worker {
  public:
    explicit Worker(const Options& options)
        : m_consumer(address_of(options), queue, consumer_options(options)) {}

    void start() {
        m_thread = std::thread([this] {
            while (auto guard = m_consumer.next()) {
                m_total.add((*guard)->id);
                ack(*guard);
                m_messages.store(m_total.messages, std::memory_order_relaxed);
            }
        });
    }
    [[nodiscard]] std::uint64_t messages() const noexcept {
        return m_messages.load(std::memory_order_relaxed);
    }
    Total stop() {
        m_consumer.stop();
        m_thread.join();
        return m_total;
    }

  private:
    Consumer<Message> m_consumer;
    Total m_total; ///< of the thread
    std::atomic<std::uint64_t> m_messages{0};
    std::thread m_thread;
};

/// Several consumers on one queue.
inline void library_consumers(const Options& options) {
    Redis redis(options.socket());
    Meter meter(options.socket());
    const Filled filled = fill(redis, options.number("count"), 0);
    std::deque<Worker> workers;
    for (std::int64_t i = 0; i < options.number("consumers"); ++i) {
        workers.emplace_back(options);
    }
    meter.start();
    for (Worker& worker : workers) {
        worker.start();
    }
    for (std::uint64_t messages = 0; messages < filled.ids.messages;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        messages = 0;
        for (const Worker& worker : workers) {
            messages += worker.messages();
        }
    }
    meter.stop();
    Total total;
    for (Worker& worker : workers) {
        const Total part = worker.stop();
        total.messages += part.messages;
        total.sum += part.sum;
    }
    expect(total, filled.ids);
    meter.print(total.messages);
}

} // namespace orizuru::benchmark
