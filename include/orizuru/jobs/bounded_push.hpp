// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Pushes to a queue that may only become so long.
//
// What is counted is what waits in the queue. Deliveries in flight, rejected and scheduled messages
// do not count, and come back whatever the length: the queue may then be longer.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/redis/refusal.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/error.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/reply.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace orizuru {

/// What happens to a message for a queue that is full.
enum class Overflow {
    refuse,     ///< it is not pushed
    drop_oldest ///< it is pushed; those that would be served next go, for good
};

struct QueueBound {
    /// 1 or more.
    std::int64_t max_length;
    Overflow overflow = Overflow::refuse;
};

struct BoundedPush {
    bool pushed;
    std::uint64_t dropped; ///< more than one when the queue was longer than the bound
    std::uint64_t length;  ///< of the queue after it

    friend bool operator==(const BoundedPush&, const BoundedPush&) = default;
};

namespace detail {

// KEYS[1] source; ARGV[1] bound, [2] 'refuse' | 'drop', [3] the message. Returns whether it was
// pushed, how many were dropped, and the length.
inline const std::string& push_bounded_script() {
    static const std::string script = adding_script(R"lua(
local source, most = KEYS[1], tonumber(ARGV[1])
local refused = refusal({{source, 'list'}},
    {{'LLEN', source}, {'LPUSH', source, 'x'}, {'LTRIM', source, '0', '0'}})
if refused then return refused end
local length = redis.call('LLEN', source)
if length >= most and ARGV[2] == 'refuse' then return {0, 0, length} end
length = redis.call('LPUSH', source, ARGV[3])
if length <= most then return {1, 0, length} end
redis.call('LTRIM', source, 0, most - 1)
return {1, length - most, most}
)lua");
    return script;
}

} // namespace detail

/// Puts a message on the queue unless that has `max_length` messages already, or drops the oldest
/// for it.
/// Redis: LLEN, LPUSH and LTRIM in one script, O(1) and O(dropped); never buffered.
/// Atomic: no other producer that asks for the bound can exceed it.
/// Blocks and throws as Producer::push without a buffer; std::invalid_argument for a bound under 1.
/// When Redis is full it is refused as OOM, and nothing is dropped.
template <MessageEncodable T>
[[nodiscard]] BoundedPush push_bounded(Producer<T>& producer, const T& message,
                                       const QueueBound& bound) {
    if (bound.max_length < 1) {
        throw std::invalid_argument("a queue's max_length must be 1 or more");
    }
    std::string payload;
    detail::encode(message, payload, producer.options().max_payload);
    const Reply reply = producer.command(
        "EVAL", detail::push_bounded_script(), 1, producer.keys().source(), bound.max_length,
        bound.overflow == Overflow::refuse ? "refuse" : "drop", payload);
    const auto& parts = reply.elements;
    if (parts.size() != 3 || !detail::is_count(parts[0]) || !detail::is_count(parts[1]) ||
        !detail::is_count(parts[2])) {
        throw ProtocolError("EVAL was answered by a reply of the wrong type");
    }
    return {parts[0].integer == 1, static_cast<std::uint64_t>(parts[1].integer),
            static_cast<std::uint64_t>(parts[2].integer)};
}

} // namespace orizuru
