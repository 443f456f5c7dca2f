// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Puts messages on a queue: LPUSH on the source list, as a producer in any language may do.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/producer/push_buffer.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/producer/push_pipeline.hpp>
#include <orizuru/detail/producer/push_series.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/producer_options.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

namespace detail {

/// Adds to an error on its way out how far a push_all had come.
struct PushCount {
    static void set(Error& error, std::uint64_t pushed) noexcept { error.m_pushed = pushed; }
};

} // namespace detail

/// A range, read once, whose elements can be read as T.
template <class R, class T>
concept RangeOf = std::ranges::input_range<R> && requires(R& range) {
    { *std::ranges::begin(range) } -> std::convertible_to<const T&>;
};

/// A producer for one queue: one connection, used by one thread at a time.
///
/// When an operation returns, Redis has the messages. When it throws, ConnectionError::in_doubt()
/// says whether Redis may have them all the same; nothing is repeated by itself. After any error
/// the producer can be used again: it connects anew.
///
/// With ProducerOptions::buffer, push() only accepts messages, and flush() says when Redis has
/// them. What was accepted is kept until Redis has confirmed it, for as long as the process lives,
/// through refusals and outages. An LPUSH whose outcome is in doubt is sent again: its messages may
/// then be in the queue twice. Their order holds, but for an LPUSH that was sent before Redis
/// refused the one in front of it.
template <MessageEncodable T>
class Producer {
  public:
    /// Connects. Throws std::invalid_argument for a name that no queue can have or an option that
    /// cannot be, ConnectionError within connect_timeout (name resolution excluded), ReplyError for
    /// refused credentials; with a buffer std::system_error when the process can have no more
    /// descriptors or threads.
    ///
    /// With a buffer, the destructor tries to flush for at most command_timeout, and cannot tell
    /// whether it has: call flush() first. In a forked child it sends nothing.
    Producer(Endpoint endpoint, std::string queue, ProducerOptions options = {})
        : m_keys(std::move(queue)),
          m_options(checked(options)),
          m_chunks{detail::PushChunk(m_keys.source()), detail::PushChunk(m_keys.source())} {
        if (m_options.buffer == 0) {
            m_pipeline.emplace(std::move(endpoint), m_keys.source());
        } else {
            m_buffer.reset(new detail::PushBuffer(std::move(endpoint), m_keys.source(),
                                                  static_cast<std::size_t>(m_options.buffer),
                                                  m_options.buffer_time));
        }
    }

    /// Puts one message on the queue; returns the queue's length after it.
    /// Redis: LPUSH, O(1). Blocks: a round trip, at most command_timeout.
    /// Throws: EncodeError; ReplyError (OOM: the queue is full, WRONGTYPE: the key is no list), not
    ///     pushed; ConnectionError; ProtocolError, in doubt.
    ///
    /// With a buffer: accepts the message, which is lost when the process dies before it has been
    /// sent; returns the queue's length as Redis last told it, 0 before the first answer. Every
    /// `buffer` messages an LPUSH is sent; two are in flight. Blocks only when a third is full,
    /// until Redis has answered the first, at most connect_timeout and command_timeout. Throws as
    /// above when Redis does not take it; the message is not accepted then, those before still are.
    std::uint64_t push(const T& message) {
        if (m_buffer) {
            return m_buffer->push(writer(message));
        }
        detail::PushSeries series(*m_pipeline, m_chunks);
        series.add(writer(message));
        series.finish();
        return *series.length();
    }

    /// Puts many messages on the queue, in their order, in few round trips; returns the queue's
    /// length after the last.
    ///
    /// Redis: LPUSH of up to 1000 messages or 1 MiB each, every one atomic, the whole not. While
    ///     Redis works on one, the range is read for the next: two are in flight.
    /// Blocks: until Redis has answered all; at most command_timeout for each LPUSH, from when it
    ///     is sent.
    /// Throws: as push. The messages before messages[Error::pushed()] are certainly in the queue;
    ///     who resumes there loses none. Those behind it are not, with two exceptions:
    ///     ConnectionError::in_doubt() speaks of up to two LPUSHes; and behind one that Redis
    ///     refused, the next may have been on its way and have been pushed, which what() then says.
    ///     An exception of the range passes through; the LPUSHes that were full by then are done.
    ///     When one of those fails, its error is thrown instead, since it is about messages before.
    ///     std::logic_error when the range uses this producer.
    /// With a buffer: what is in it goes first, as by flush(), which may throw; the messages of the
    ///     range are in Redis when this returns.
    template <RangeOf<T> R>
    std::uint64_t push_all(R&& messages);

    std::uint64_t push_all(std::initializer_list<T> messages) {
        return push_all<const std::initializer_list<T>&>(messages);
    }

    /// Returns when Redis has confirmed all that push() has accepted; at once without a buffer.
    /// Redis: up to three LPUSHes.
    /// Blocks: at most command_timeout for each, and connect_timeout.
    /// Throws: ReplyError, ConnectionError, ProtocolError. All that is unconfirmed stays in the
    ///     buffer: the producer's thread tries again after a while, the next call at once.
    void flush() {
        if (m_buffer) {
            m_buffer->flush();
        }
    }

    /// How many of the messages that push() has accepted Redis has not confirmed; 0 without a
    /// buffer.
    [[nodiscard]] std::size_t unconfirmed() const { return m_buffer ? m_buffer->unconfirmed() : 0; }

    /// A command of your own on the producer's connection, such as a script that pushes in a way of
    /// its own. With a buffer, what is in it goes first, as by flush(), which may throw.
    /// Blocks at most command_timeout. Throws as push without a buffer does.
    template <class... Arguments>
    Reply command(std::string_view name, const Arguments&... arguments) {
        flush();
        return (m_buffer ? m_buffer->pipeline() : *m_pipeline).command(name, arguments...);
    }

    [[nodiscard]] const Keys& keys() const noexcept { return m_keys; }
    [[nodiscard]] const ProducerOptions& options() const noexcept { return m_options; }

    /// The length of the queue, without what is in the buffer.
    /// Redis: LLEN, O(1). Throws as push does; there is no made-up 0.
    std::uint64_t size() { return m_buffer ? m_buffer->length() : m_pipeline->length(); }

  private:
    static ProducerOptions checked(ProducerOptions options) {
        detail::check_max_payload(options.max_payload);
        if (options.buffer < 0 ||
            options.buffer > static_cast<int>(detail::PushChunk::most_messages)) {
            throw std::invalid_argument("buffer must be 0 to 1000");
        }
        if (options.buffer_time < std::chrono::milliseconds(1) ||
            options.buffer_time > std::chrono::hours(24)) {
            throw std::invalid_argument("buffer_time must be 1 ms to 24 h");
        }
        return options;
    }

    [[nodiscard]] auto writer(const T& message) const {
        return [&message, this](std::string& out) {
            detail::encode(message, out, m_options.max_payload);
        };
    }

    template <RangeOf<T> R>
    void add_all(detail::PushSeries& series, R& messages);

    Keys m_keys;
    ProducerOptions m_options;
    detail::PushSeries::Chunks m_chunks;
    std::optional<detail::PushPipeline> m_pipeline; ///< without a buffer, else the buffer's
    detail::PushBuffer::Pointer m_buffer;
};

template <MessageEncodable T>
template <RangeOf<T> R>
std::uint64_t Producer<T>::push_all(R&& messages) {
    flush();
    std::optional<std::uint64_t> length;
    {
        detail::PushSeries series(m_buffer ? m_buffer->pipeline() : *m_pipeline, m_chunks);
        try {
            add_all(series, messages);
        } catch (Error& error) {
            detail::PushCount::set(error, series.pushed());
            throw;
        }
        length = series.length();
    }
    return length ? *length : size();
}

template <MessageEncodable T>
template <RangeOf<T> R>
void Producer<T>::add_all(detail::PushSeries& series, R& messages) {
    try {
        for (auto&& message : messages) {
            series.add(writer(message));
        }
    } catch (...) {
        // What fails in Redis was in front of what has failed here.
        series.settle();
        throw;
    }
    series.finish();
}

} // namespace orizuru
