// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Puts messages on the queue, through the library.

#pragma once

#include "benchmark/library_consumer.hpp"
#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/orizuru.hpp>

#include <cstddef>
#include <iostream>
#include <iterator>
#include <vector>

namespace orizuru::benchmark {

/// Makes `count` messages by repeating the given ones.
class Repeated {
  public:
    Repeated(const std::vector<Message>& messages, std::size_t count)
        : m_messages(messages), m_count(count) {}

    class Iterator {
      public:
        using value_type = Message;
        using difference_type = std::ptrdiff_t;

        Iterator(const std::vector<Message>& messages, std::size_t count)
            : m_messages(&messages), m_next(messages.data()), m_left(count) {}

        const Message& operator*() const noexcept { return *m_next; }
        Iterator& operator++() noexcept {
            --m_left;
            if (++m_next == m_messages->data() + m_messages->size()) {
                m_next = m_messages->data();
            }
            return *this;
        }
        void operator++(int) noexcept { ++*this; }
        friend bool operator==(const Iterator& iterator, std::default_sentinel_t) noexcept {
            return iterator.m_left == 0;
        }

      private:
        const std::vector<Message>* m_messages;
        const Message* m_next;
        std::size_t m_left;
    };

    [[nodiscard]] Iterator begin() const noexcept { return {m_messages, m_count}; }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  private:
    const std::vector<Message>& m_messages;
    std::size_t m_count;
};

/// Pushes single messages that the producer gathers.
inline void push_buffered(const Options& options, const Repeated& messages, Meter& meter) {
    BufferedProducer<Message> producer(address_of(options), queue,
                                       {.size = static_cast<int>(options.number("chunk"))});
    meter.start();
    for (const Message& message : messages) {
        producer.push(message);
    }
    producer.flush();
    meter.stop();
}

/// way=all: push_all; way=each: push; way=buffered: pushes of a BufferedProducer.
inline void library_produce(const Options& options) {
    const auto messages = some_messages();
    const auto count = static_cast<std::size_t>(options.number("count"));
    const Repeated range(messages, count);
    Redis redis(options.socket());
    Meter meter(options.socket());
    if (options.word("way") == "buffered") {
        push_buffered(options, range, meter);
    } else {
        Producer<Message> producer(address_of(options), queue);
        meter.start();
        if (options.word("way") == "all") {
            producer.push_all(range);
        } else {
            for (const Message& message : range) {
                producer.push(message);
            }
        }
        meter.stop();
    }
    expect_length(redis, count);
    meter.print(count);
}

} // namespace orizuru::benchmark
