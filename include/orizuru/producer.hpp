// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Puts messages on a queue: LPUSH on the source list, as a producer in any language may do.

#include <orizuru/codec.hpp>
#include <orizuru/connection.hpp>
#include <orizuru/detail/encoding.hpp>
#include <orizuru/detail/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
          m_connection(std::move(endpoint)) {}

    /// Puts one message on the queue; returns the queue's length after it.
    /// Redis: LPUSH, O(1). Blocks: a round trip, at most command_timeout.
    /// Throws: EncodeError; ReplyError (OOM: the queue is full, WRONGTYPE: the key is no list), not
    ///     pushed; ConnectionError; ProtocolError, in doubt.
    std::uint64_t push(const T& message) {
        m_payload.clear();
        detail::encode(message, m_payload, m_options.max_payload);
        return length_after("LPUSH", [this](std::string& out) {
            detail::append_command(out, "LPUSH", m_keys.source(), m_payload);
        });
    }

    /// Puts many messages on the queue, in their order, in few round trips; returns the queue's
    /// length after the last.
    /// Redis: LPUSH of up to 1000 messages or 1 MiB each, every one atomic, the whole not.
    /// Throws: as push; Error::pushed() counts the messages that are certainly in the queue. Those
    ///     behind them are not, but for the one LPUSH that a ConnectionError::in_doubt() speaks of.
    ///     An exception of the range itself passes through.
    template <RangeOf<T> R>
    std::uint64_t push_all(R&& messages);

    std::uint64_t push_all(std::initializer_list<T> messages) {
        return push_all<const std::initializer_list<T>&>(messages);
    }

    /// The length of the queue.
    /// Redis: LLEN, O(1). Throws as push does; there is no made-up 0.
    std::uint64_t size() {
        return length_after("LLEN", [this](std::string& out) {
            detail::append_command(out, "LLEN", m_keys.source());
        });
    }

  private:
    static constexpr std::size_t most_in_a_push = 1000;
    static constexpr std::size_t most_bytes_in_a_push = std::size_t{1} << 20;

    static ProducerOptions checked(ProducerOptions options) {
        detail::check_max_payload(options.max_payload);
        return options;
    }

    template <class Write>
    std::uint64_t length_after(std::string_view command, Write write) {
        const Reply reply = m_connection.roundtrip(m_keys.source(), command, write);
        m_connection.require(reply, Reply::Type::integer, command);
        return static_cast<std::uint64_t>(reply.integer);
    }

    Keys m_keys;
    ProducerOptions m_options;
    Connection m_connection;
    std::string m_payload; ///< of one push or of a whole chunk
};

template <MessageEncodable T>
template <RangeOf<T> R>
std::uint64_t Producer<T>::push_all(R&& messages) {
    std::uint64_t pushed = 0;
    std::uint64_t length = 0;
    std::vector<std::size_t> ends; // where each message of the chunk ends in m_payload
    m_payload.clear();
    const auto push_chunk = [&] {
        length = length_after("LPUSH", [&](std::string& out) {
            detail::begin_command(out, 2 + ends.size());
            detail::append_argument(out, std::string_view("LPUSH"));
            detail::append_argument(out, m_keys.source());
            std::size_t begin = 0;
            for (const std::size_t end : ends) {
                detail::append_argument(out,
                                        std::string_view(m_payload).substr(begin, end - begin));
                begin = end;
            }
        });
        pushed += ends.size();
        ends.clear();
        m_payload.clear();
    };
    try {
        for (auto&& message : messages) {
            detail::encode<T>(message, m_payload, m_options.max_payload);
            ends.push_back(m_payload.size());
            if (ends.size() == most_in_a_push || m_payload.size() >= most_bytes_in_a_push) {
                push_chunk();
            }
        }
        if (!ends.empty()) {
            push_chunk();
        }
    } catch (Error& error) {
        detail::PushCount::set(error, pushed);
        throw;
    }
    return pushed == 0 ? size() : length;
}

} // namespace orizuru
