// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The messages that both programs send and take, and functions that fill a queue with them before
// the measurement.

#pragma once

#include "benchmark/child.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/codec.hpp>
#include <orizuru/msgpack.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace orizuru::benchmark {

inline const std::string queue = "benchmark";

/// 19 to 27 bytes of msgpack.
struct Message {
    std::uint64_t id = 0;
    std::string name;
    MSGPACK_DEFINE(id, name)
};

/// The pushed message; its name is too long to fit into the string itself.
[[nodiscard]] inline Message numbered(std::uint64_t id) { return {id, "sixteen letters."}; }

/// The check at the end: all messages came, and they were the ones sent.
struct Total {
    std::uint64_t messages = 0;
    std::uint64_t sum = 0; ///< of ids, or of sizes when a message has only a size

    void add(std::uint64_t value) noexcept {
        ++messages;
        sum += value;
    }
    friend bool operator==(const Total&, const Total&) = default;
};

inline void expect(const Total& found, const Total& wanted) {
    if (found != wanted) {
        throw std::runtime_error("wrong messages: " + std::to_string(found.messages) + " of " +
                                 std::to_string(wanted.messages) + ", their sum " +
                                 std::to_string(found.sum) + " instead of " +
                                 std::to_string(wanted.sum));
    }
}

[[nodiscard]] inline std::string payload_of(const Message& message) {
    std::string payload;
    Codec<Message>::encode(message, payload);
    return payload;
}

/// The sums of the messages that `fill` has put on the queue.
struct Filled {
    Total ids;
    Total sizes;
};

/// Puts `count` messages on a list: payload(i), with i from 0, `chunk` at a time.
template <class Payload>
Filled fill_list(Redis& redis, const std::string& list, std::size_t count, std::size_t chunk,
                 Payload payload) {
    Filled filled;
    std::vector<std::string> payloads;
    for (std::size_t i = 0; i < count;) {
        payloads.clear();
        for (; payloads.size() < chunk && i < count; ++i) {
            payloads.push_back(payload(i));
            filled.ids.add(i);
            filled.sizes.add(payloads.back().size());
        }
        redis.begin();
        redis.add("LPUSH");
        redis.add(list);
        for (const std::string& one : payloads) {
            redis.add(one);
        }
        redis.send();
        redis.reply();
    }
    return filled;
}

/// Puts `count` messages on the queue: Message with ids from 0, or `size` bytes when not 0.
inline Filled fill(Redis& redis, std::size_t count, std::size_t size) {
    constexpr std::size_t most_messages = 1000;
    constexpr std::size_t most_bytes = std::size_t{1} << 20;
    const std::size_t chunk =
        size == 0 ? most_messages : std::clamp(most_bytes / size, std::size_t{1}, most_messages);
    return fill_list(redis, queue, count, chunk, [=](std::size_t i) {
        return size == 0 ? payload_of(numbered(i)) : std::string(size, 'x');
    });
}

/// Does the same in a process of its own: the memory of this one is not touched.
inline void fill_by_child(const std::string& socket, std::size_t count) {
    Child child([&](const auto& await_start) {
        await_start();
        Redis redis(socket);
        fill(redis, count, 0);
    });
    child.await_ready();
    child.start();
    child.wait();
}

/// The messages that producers push, again and again.
[[nodiscard]] inline std::vector<Message> some_messages(std::size_t count = 1000) {
    std::vector<Message> messages;
    for (std::size_t i = 0; i < count; ++i) {
        messages.push_back(numbered(i));
    }
    return messages;
}

/// The total of the first `count` messages: first `filled` from `fill`, then those that were pushed
/// again and again.
[[nodiscard]] inline Total first_of(std::size_t filled, const std::vector<Message>& pushed,
                                    std::size_t count, std::uint64_t (*value)(const Message&)) {
    Total total;
    for (std::size_t i = 0; i < count; ++i) {
        total.add(value(i < filled ? numbered(i) : pushed[(i - filled) % pushed.size()]));
    }
    return total;
}

inline void expect_length(Redis& redis, std::uint64_t wanted) {
    const auto length = static_cast<std::uint64_t>(redis.command("LLEN", queue)->integer);
    if (length != wanted) {
        throw std::runtime_error(std::to_string(length) + " messages in the queue instead of " +
                                 std::to_string(wanted));
    }
}

} // namespace orizuru::benchmark
