// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Puts messages on a queue: LPUSH on the source list, as a producer in any language may do.

#include <orizuru/codec.hpp>
#include <orizuru/connection.hpp>
#include <orizuru/detail/encoding.hpp>
#include <orizuru/detail/push_chunk.hpp>
#include <orizuru/detail/push_pipeline.hpp>
#include <orizuru/detail/push_series.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <string>
#include <utility>

namespace orizuru {

namespace detail {

/// Adds to an error on its way out how far a push_all had come.
struct PushCount {
    static void set(Error& error, std::uint64_t pushed) noexcept { error.m_pushed = pushed; }
};

} // namespace detail

struct ProducerOptions {
    /// Larger payloads are refused with EncodeError before anything is sent. In bytes, up to
    /// 512 MiB; keep it at or below that of the consumers.
    std::int64_t max_payload = std::int64_t{16} << 20;
};

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
template <MessageEncodable T>
class Producer {
  public:
    /// Connects. Throws std::invalid_argument for a name that no queue can have, ConnectionError
    /// within connect_timeout (name resolution excluded), ReplyError for refused credentials.
    Producer(Endpoint endpoint, std::string queue, ProducerOptions options = {})
        : m_keys(std::move(queue)),
          m_options(checked(options)),
          m_pipeline(std::move(endpoint), m_keys.source()),
          m_chunks{detail::PushChunk(m_keys.source()), detail::PushChunk(m_keys.source())} {}

    /// Puts one message on the queue; returns the queue's length after it.
    /// Redis: LPUSH, O(1). Blocks: a round trip, at most command_timeout.
    /// Throws: EncodeError; ReplyError (OOM: the queue is full, WRONGTYPE: the key is no list), not
    ///     pushed; ConnectionError; ProtocolError, in doubt.
    std::uint64_t push(const T& message) {
        detail::PushSeries series(m_pipeline, m_chunks);
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
    template <RangeOf<T> R>
    std::uint64_t push_all(R&& messages);

    std::uint64_t push_all(std::initializer_list<T> messages) {
        return push_all<const std::initializer_list<T>&>(messages);
    }

    /// The length of the queue.
    /// Redis: LLEN, O(1). Throws as push does; there is no made-up 0.
    std::uint64_t size() {
        Connection& connection = m_pipeline.connection();
        const Reply reply = connection.command(m_keys.source(), "LLEN", m_keys.source());
        connection.require(reply, Reply::Type::integer, "LLEN");
        return static_cast<std::uint64_t>(reply.integer);
    }

  private:
    static ProducerOptions checked(ProducerOptions options) {
        detail::check_max_payload(options.max_payload);
        return options;
    }

    auto writer(const T& message) const {
        return [&message, this](std::string& out) {
            detail::encode(message, out, m_options.max_payload);
        };
    }

    template <RangeOf<T> R>
    void add_all(detail::PushSeries& series, R& messages);

    Keys m_keys;
    ProducerOptions m_options;
    detail::PushPipeline m_pipeline;
    detail::PushSeries::Chunks m_chunks;
};

template <MessageEncodable T>
template <RangeOf<T> R>
std::uint64_t Producer<T>::push_all(R&& messages) {
    std::optional<std::uint64_t> length;
    {
        detail::PushSeries series(m_pipeline, m_chunks);
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
