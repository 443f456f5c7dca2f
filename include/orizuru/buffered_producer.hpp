// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Gathers messages and pushes them in batches.

#include <orizuru/buffered_producer_options.hpp>
#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/producer/buffered_producer_core.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace orizuru {

/// @cond
// For a T without a Codec that can encode it.
template <class T>
class BufferedProducer : detail::NoCodec<T, detail::Coding::encode> {
    using detail::NoCodec<T, detail::Coding::encode>::NoCodec;
};
/// @endcond

/// Pushes messages to one queue in batches; any number of threads may share it. It owns one
/// connection and one thread.
///
/// push() accepts a message; flush() returns when Redis has confirmed it, and with
/// BufferedProducerOptions::replicas enough of them, too. The producer keeps
/// accepted messages until Redis confirms them, through refusals and outages; they are lost if the
/// process dies first. When the outcome of an LPUSH is in doubt, the producer sends it again: its
/// messages may then be in the queue twice. When only too few replicas have it, it is not sent
/// again as long as its connection lives.
///
/// A message that is longer than the server's proto-max-bulk-len does not hold up the others: the
/// producer takes it out, sends the rest by a new connection, and keeps it until flush() gives it
/// back.
///
/// Messages of one thread keep their order, except for an LPUSH that was in flight when Redis
/// refused the one before it.
///
/// All member functions except the destructor and assignment are thread-safe.
template <MessageEncodable T>
class BufferedProducer<T> {
  public:
    /// Connects and starts the thread. Throws std::invalid_argument for an invalid queue name or
    /// option, ConnectionError within connect_timeout (name resolution excluded), ReplyError for
    /// refused credentials, std::system_error when the process has no descriptor or thread left.
    ///
    /// The destructor tries to flush for at most command_timeout, with replicas also their time,
    /// and cannot report a failure: call flush() first. In a forked child it sends nothing.
    BufferedProducer(const Endpoint& endpoint, std::string queue,
                     BufferedProducerOptions options = {})
        : m_core(endpoint, std::move(queue), options) {}

    /// Accepts a message; returns the queue's length as Redis last reported it, 0 before the first
    /// answer. Encodes the message under the producer's lock.
    ///
    /// Redis: an LPUSH per `size` messages, and one for messages that have waited for `time`; at
    ///     most two are in flight.
    /// Blocks: when two LPUSHes are unconfirmed and a third is full, until Redis answers, at most
    ///     connect_timeout plus command_timeout, with replicas also their time.
    /// Throws: EncodeError; ReplyError (OOM: Redis' memory is full, WRONGTYPE: the key is no list),
    ///     ConnectionError and ProtocolError when the buffer is full and Redis does not take its
    ///     messages; RefusedError, as flush, when the messages to give back take over 64 MiB;
    ///     std::logic_error when the Codec of T uses this producer. The producer then does not
    ///     accept the message; it keeps the earlier ones.
    std::uint64_t push(const T& message) {
        const auto payload = [&](std::string& out) {
            detail::encode(message, out, options().max_payload);
            return true;
        };
        return m_core.push(payload);
    }

    /// Returns when Redis has confirmed every message accepted before the call.
    /// Redis: up to three LPUSHes.
    /// Blocks: at most command_timeout for each, with replicas also their time, plus
    ///     connect_timeout.
    /// Throws: ReplyError, ConnectionError (in doubt when too few replicas have what is in the
    ///     queue), ProtocolError. Unconfirmed messages stay in the buffer: the producer's thread
    ///     retries after a pause, the next call retries at once. RefusedError gives back a message,
    ///     of any thread, that Redis refused for itself; all others are then confirmed, but those
    ///     for which the next call throws it.
    void flush() { m_core.flush(); }

    /// The number of accepted messages that Redis has not confirmed and flush() has not given back.
    [[nodiscard]] std::size_t unconfirmed() const { return m_core.unconfirmed(); }

    /// The length of the queue, without the messages in the buffer.
    /// Redis: LLEN, O(1), after the answers to the LPUSHes in flight.
    /// Blocks: until these have come, and for a round trip; at most connect_timeout and twice
    ///     command_timeout, with replicas also their time, and as long for each call of another
    ///     thread before it.
    /// Throws: ReplyError, ConnectionError, ProtocolError; it never returns a made-up 0.
    std::uint64_t size() { return m_core.length(); }

    /// The keys of the queue. Valid as long as this producer; throws std::logic_error when it was
    /// moved from.
    [[nodiscard]] const Keys& keys() const { return m_core.keys(); }
    /// The options as they were given. Valid, and throws, as keys().
    [[nodiscard]] const BufferedProducerOptions& options() const { return m_core.options(); }

  private:
    detail::BufferedProducerCore m_core;
};

} // namespace orizuru
