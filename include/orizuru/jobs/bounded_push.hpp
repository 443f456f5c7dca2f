// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Pushes to a queue of bounded length.
//
// The bound counts the messages that wait in the queue. Deliveries in flight, rejected and
// scheduled messages do not count, and return even to a full queue: it may then be longer.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/reply.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace orizuru {

/// Chooses what happens to a message for a queue that is full.
enum class Overflow {
    refuse,     ///< it is not pushed
    drop_oldest ///< it is pushed; the messages that would be served next are deleted, and unique
                ///< jobs among them release their locks (unique.hpp)
};

/// The bound of a queue for one push.
struct QueueBound {
    /// 1 or more.
    std::int64_t max_length;
    /// Decides when the queue has `max_length` messages already.
    Overflow overflow = Overflow::refuse;
};

/// The result of push_bounded.
struct BoundedPush {
    bool pushed; ///< false: the queue was full and the message was refused
    /// More than one when the queue was longer than the bound; up to 1000, or as many as have 4
    /// MiB. If it is longer still, the pushes that follow drop the rest.
    std::uint64_t dropped;
    std::uint64_t length; ///< the queue's after the push

    /// True when all members are equal.
    friend bool operator==(const BoundedPush&, const BoundedPush&) = default;
};

namespace detail {

/// Throws std::invalid_argument.
void validate(const QueueBound& bound);

/// KEYS[1] source; ARGV[1] bound, [2] 'refuse' | 'drop', [3] the message. Returns whether it was
/// pushed, how many were dropped, and the length.
[[nodiscard]] const CachedScript& push_bounded_script();

/// From the script's reply; throws ProtocolError when it cannot be that.
[[nodiscard]] BoundedPush bounded_push(const Reply& reply);

} // namespace detail

/// Puts a message on the queue unless that has `max_length` messages already, or drops the oldest
/// for it.
/// Redis: LLEN, LPUSH and LTRIM in one script, O(1) and O(dropped); LRANGE for each that it drops,
///     and GET and DEL for the lock of a unique job. By EVALSHA, and then by EVAL where Redis does
///     not know the script, or the user has no right to EVALSHA.
/// Atomic: no other producer that asks for the bound can exceed it.
/// Blocks and throws as Producer::push; std::invalid_argument for a bound under 1.
/// A full Redis refuses the push as OOM, and nothing is dropped. Without a right to the lock of a
/// job that is to be dropped, the push is refused as NOPERM; but a lock of another queue merely
/// stays.
template <MessageEncodable T>
[[nodiscard]] BoundedPush push_bounded(Producer<T>& producer,
                                       const std::type_identity_t<T>& message,
                                       const QueueBound& bound) {
    detail::validate(bound);
    const std::string payload = detail::encoded(message, producer.options().max_payload);
    const auto run = [&](std::string_view command, std::string_view script) {
        return producer.command(command, script, 1, producer.keys().source(), bound.max_length,
                                bound.overflow == Overflow::refuse ? "refuse" : "drop", payload);
    };
    return detail::bounded_push(detail::run_by_either(detail::push_bounded_script(), run));
}

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/jobs/bounded_push.ipp>
#endif
