// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Puts messages on the queue, by hiredis alone.

#pragma once

#include "benchmark/messages.hpp"
#include "benchmark/meter.hpp"
#include "benchmark/options.hpp"
#include "benchmark/redis.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace orizuru::benchmark {

/// Each LPUSH has `chunk` messages; `in_flight` LPUSHes at a time.
class BareProducer {
  public:
    BareProducer(const std::string& socket, std::size_t chunk, std::size_t in_flight)
        : m_redis(socket), m_chunk(chunk), m_in_flight(in_flight) {}

    /// Pushes the payloads again and again until there are `count`.
    void push(const std::vector<std::string>& payloads, std::size_t count) {
        std::size_t unanswered = 0;
        for (std::size_t pushed = 0; pushed < count;) {
            m_redis.begin();
            m_redis.add("LPUSH");
            m_redis.add(queue);
            for (std::size_t i = 0; i < m_chunk && pushed < count; ++i, ++pushed) {
                m_redis.add(payloads[pushed % payloads.size()]);
            }
            m_redis.send();
            if (++unanswered == m_in_flight) {
                m_redis.reply();
                --unanswered;
            }
        }
        for (; unanswered > 0; --unanswered) {
            m_redis.reply();
        }
    }

  private:
    Redis m_redis;
    std::size_t m_chunk;
    std::size_t m_in_flight;
};

[[nodiscard]] inline std::vector<std::string> encoded(const std::vector<Message>& messages) {
    std::vector<std::string> payloads;
    for (const Message& message : messages) {
        payloads.push_back(payload_of(message));
    }
    return payloads;
}

inline void bare_produce(const Options& options) {
    const auto payloads = encoded(some_messages());
    const auto count = static_cast<std::size_t>(options.number("count"));
    BareProducer producer(options.socket(), options.number("chunk"), options.number("in_flight"));
    Redis redis(options.socket());
    Meter meter(options.socket());
    meter.start();
    producer.push(payloads, count);
    meter.stop();
    expect_length(redis, count);
    meter.print(count);
}

} // namespace orizuru::benchmark
