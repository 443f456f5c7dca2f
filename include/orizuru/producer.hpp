// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Pushes messages to a queue: LPUSH on the source list, as a producer in any language may do.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/producer_options.hpp>
#include <orizuru/reply.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

namespace detail {
struct ProducerAccess;
} // namespace detail

/// @cond
// For a T without a Codec that can encode it.
template <class T>
class Producer : detail::NoCodec<T, detail::Coding::encode> {
    using detail::NoCodec<T, detail::Coding::encode>::NoCodec;
};
/// @endcond

/// Pushes messages to one queue: one connection, for one thread at a time.
///
/// Redis has the messages when an operation returns. When it throws, ConnectionError::in_doubt()
/// says whether Redis may still have them; the producer repeats nothing that Redis may have done.
/// You can use it again after any error: it reconnects.
///
/// BufferedProducer gathers messages and can be shared by threads.
template <MessageEncodable T>
class Producer<T> {
  public:
    /// Connects. Throws std::invalid_argument for an invalid queue name or option, ConnectionError
    /// within connect_timeout (name resolution excluded), ReplyError for refused credentials.
    [[gnu::cold]] Producer(const Endpoint& endpoint, std::string queue,
                           ProducerOptions options = {})
        : m_core(endpoint, std::move(queue), options) {}

    /// Pushes one message; returns the queue's length after it.
    /// Redis: LPUSH, O(1). Blocks: a round trip, at most command_timeout. When the server has
    ///     become a replica, or another node of a Cluster has the queue (nothing ran), connects
    ///     anew and pushes once more, within as long again and connect_timeout.
    /// Throws: EncodeError and ReplyError (OOM: Redis' memory is full, WRONGTYPE: the key is no
    ///     list; RefusedError: it is longer than the server's proto-max-bulk-len), not pushed;
    ///     ConnectionError; ProtocolError, in doubt.
    std::uint64_t push(const T& message) {
        const auto payload = [&](std::string& out) {
            detail::encode(message, out, options().max_payload);
            return true;
        };
        return m_core.push(payload);
    }

    /// Pushes many messages, in order, in few round trips; returns the length after the last.
    ///
    /// Redis: LPUSH of up to 1000 messages or 1 MiB each; each is atomic, the whole is not. While
    ///     Redis works on one, the producer reads the range for the next: two are in flight.
    /// Blocks: until Redis has answered all; at most command_timeout for each LPUSH, from when it
    ///     is sent, and as push for one that another server has to get.
    /// Throws: as push. The messages before messages[Error::pushed()] are certainly in the queue:
    ///     resume there to lose none. Those behind it are not, with two exceptions:
    ///     ConnectionError::in_doubt() covers up to two LPUSHes; and when Redis refuses an LPUSH,
    ///     the next one may have been in flight and pushed, which what() then says. RefusedError is
    ///     about messages[Error::pushed()] itself: go on behind it. An exception of
    ///     the range passes through; batches already full are still sent. When one of those fails,
    ///     its error is thrown instead, since it is about earlier messages. std::logic_error when
    ///     the range uses this producer.
    template <RangeOf<T> R>
    std::uint64_t push_all(R&& messages) {
        auto at = std::ranges::begin(messages);
        const auto end = std::ranges::end(messages);
        bool begun = false;
        const auto payloads = [&](std::string& out) {
            // Advances only when the next message is wanted: earlier ones may be in flight by then.
            if (std::exchange(begun, true)) {
                ++at;
            }
            if (at == end) {
                return false;
            }
            const T& message = *at;
            detail::encode(message, out, options().max_payload);
            return true;
        };
        return m_core.push_all(payloads);
    }
    /// Does the same for a list in braces.
    std::uint64_t push_all(std::initializer_list<T> messages) {
        return push_all<const std::initializer_list<T>&>(messages);
    }

    /// Runs a command of your own on the producer's connection, such as a script that pushes; with
    /// `replicas` waits for them, too. Blocks at most command_timeout for each. Throws as push.
    template <class... Arguments>
    Reply command(std::string_view name, const Arguments&... arguments) {
        std::string bytes;
        detail::append_command(bytes, name, arguments...);
        return m_core.command(name, bytes);
    }

    /// The keys of the queue. Valid as long as this producer; throws std::logic_error when it was
    /// moved from.
    [[nodiscard]] const Keys& keys() const { return m_core.keys(); }
    /// The options as they were given. Valid, and throws, as keys().
    [[nodiscard]] const ProducerOptions& options() const { return m_core.options(); }

    /// The length of the queue.
    /// Redis: LLEN, O(1). Throws as push does; it never returns a made-up 0.
    std::uint64_t size() { return m_core.length(); }

  private:
    friend struct detail::ProducerAccess;

    detail::ProducerCore m_core;
};

namespace detail {

/// For pushes that need more than Producer's own functions.
struct ProducerAccess {
    template <class T>
    [[nodiscard]] static ProducerCore& core(Producer<T>& producer) noexcept {
        return producer.m_core;
    }
};

} // namespace detail

} // namespace orizuru
