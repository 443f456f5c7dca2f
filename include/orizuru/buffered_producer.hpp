// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Gathers messages and puts them on a queue by the hundred.

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

/// A producer for one queue that any number of threads share: one connection and one thread of its
/// own.
///
/// push() accepts a message, and flush() returns when Redis has it. What was accepted is kept until
/// Redis has confirmed it, for as long as the process lives, through refusals and outages; it is
/// lost when the process dies before. An LPUSH whose outcome is in doubt is sent again: its
/// messages may then be in the queue twice.
///
/// The messages of one thread keep their order, but for an LPUSH that was on its way when Redis
/// refused the one in front of it.
///
/// All member functions may be called from any thread, but for the destructor and assignment.
template <MessageEncodable T>
class BufferedProducer {
  public:
    /// Connects and starts the thread. Throws std::invalid_argument for a name that no queue can
    /// have or an option that cannot be, ConnectionError within connect_timeout (name resolution
    /// excluded), ReplyError for refused credentials, std::system_error when the process can have
    /// no more descriptors or threads.
    ///
    /// The destructor tries to flush for at most command_timeout, and cannot tell whether it has:
    /// call flush() first. In a forked child it sends nothing.
    BufferedProducer(Endpoint endpoint, std::string queue, BufferedProducerOptions options = {})
        : m_core(std::move(endpoint), std::move(queue), options) {}

    /// Accepts a message; returns the queue's length as Redis last told it, 0 before the first
    /// answer. Encodes it under the producer's lock.
    ///
    /// Redis: an LPUSH for every `size` messages, and for those that have waited for `time`; two
    ///     are in flight.
    /// Blocks: when two LPUSHes are unconfirmed and a third is full, until Redis has answered, at
    ///     most connect_timeout and command_timeout.
    /// Throws: EncodeError; ReplyError (OOM: the queue is full, WRONGTYPE: the key is no list),
    ///     ConnectionError and ProtocolError when Redis does not take what fills the buffer;
    ///     std::logic_error when the Codec of T uses this producer. The message is not accepted
    ///     then; those before still are.
    std::uint64_t push(const T& message) {
        const auto payload = [&](std::string& out) {
            detail::encode(message, out, options().max_payload);
            return true;
        };
        return m_core.push(payload);
    }

    /// Returns when Redis has confirmed all that was accepted before the call.
    /// Redis: up to three LPUSHes.
    /// Blocks: at most command_timeout for each, and connect_timeout.
    /// Throws: ReplyError, ConnectionError, ProtocolError. All that is unconfirmed stays in the
    ///     buffer: the producer's thread tries again after a while, the next call at once.
    void flush() { m_core.flush(); }

    /// How many of the accepted messages Redis has not confirmed.
    [[nodiscard]] std::size_t unconfirmed() const { return m_core.unconfirmed(); }

    /// The length of the queue, without what is in the buffer.
    /// Redis: LLEN, O(1), behind the answers to LPUSHes in flight.
    /// Blocks: until these have come, and for a round trip; at most connect_timeout and twice
    ///     command_timeout, and as long for each call of another thread before it.
    /// Throws: ReplyError, ConnectionError, ProtocolError; there is no made-up 0.
    std::uint64_t size() { return m_core.length(); }

    [[nodiscard]] const Keys& keys() const noexcept { return m_core.keys(); }
    [[nodiscard]] const BufferedProducerOptions& options() const noexcept {
        return m_core.options();
    }

  private:
    detail::BufferedProducerCore m_core;
};

} // namespace orizuru
