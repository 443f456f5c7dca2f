// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A connection to Redis that sends a command and waits for its reply. The collector and the tools
// use it, and your code can. A producer drives the stream itself: it has two LPUSHes in flight.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

namespace detail {
class BegunCommand;
class NodeLines;
class PushPipeline;
class Stream;

/// A stream, and what Connection says of it.
struct KeptStream {
    std::unique_ptr<Stream> stream;
    TimePoint connected_at;
    bool replaced;
};
} // namespace detail

/// One connection, for one thread at a time.
///
/// It never repeats a command by itself, but for one that a node of a Cluster has refused because
/// another has the key. A ConnectionError or ProtocolError closes it; the next
/// command connects again, within connect_timeout. When a command finds the connection closed
/// before it sends anything, it reconnects without an error, since nothing can have been lost.
class Connection {
  public:
    /// Connects. Throws ConnectionError within connect_timeout (name resolution excluded),
    /// ReplyError when Redis refuses the credentials or the database.
    explicit Connection(Endpoint endpoint);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    Connection(Connection&&) noexcept;
    Connection& operator=(Connection&&) noexcept;
    ~Connection();

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }

    /// When the current connection was made; if there is none, when the last one was made.
    [[nodiscard]] std::chrono::steady_clock::time_point connected_at() const noexcept {
        return m_connected_at;
    }
    /// Whether it replaced an earlier one: Redis was unreachable in between, or is another server.
    [[nodiscard]] bool replaced() const noexcept { return m_replaced; }

    /// Keeps all commands on one connection: while a Pin lives, a lost connection is not replaced,
    /// and commands throw a ConnectionError that is not in doubt. A Pin must not outlive the
    /// connection and stays on its thread.
    class Pin {
      public:
        /// Replaces a lost connection first; under another Pin it throws instead.
        explicit Pin(Connection& connection) : m_connection(connection) {
            m_connection.ensure_connected();
            m_before = std::exchange(m_connection.m_pinned, true);
        }
        Pin(const Pin&) = delete;
        Pin& operator=(const Pin&) = delete;
        ~Pin() { m_connection.m_pinned = m_before; }

      private:
        Connection& m_connection;
        bool m_before = false;
    };

    /// Sends one command and waits for its reply, at most command_timeout.
    ///
    /// Throws: ReplyError for an error reply (the command did not run); ConnectionError, whose
    ///     in_doubt() says whether any byte was sent; ProtocolError. Messages name `about`.
    template <class... Arguments>
    Reply command(std::string_view about, std::string_view name, const Arguments&... arguments) {
        std::string bytes;
        detail::append_command(bytes, name, arguments...);
        return exchange(about, name, bytes);
    }

    /// The same for a command that `write` appends to the output.
    template <std::invocable<std::string&> Write>
    Reply roundtrip(std::string_view about, std::string_view name, Write write) {
        std::string bytes;
        write(bytes);
        return exchange(about, name, bytes);
    }

    /// Drops the connection and throws ProtocolError unless `reply` has this type.
    void require(const Reply& reply, Reply::Type type, std::string_view name) {
        if (!reply.is(type)) {
            refuse(name);
        }
    }

    /// Drops the connection and throws ProtocolError: `name` cannot have such a reply.
    [[noreturn]] void refuse(std::string_view name);

  private:
    friend class detail::BegunCommand;
    friend class detail::NodeLines;
    friend class detail::PushPipeline;

    static constexpr int most_redirections = 3;

    void ensure_connected(detail::TimePoint limit = detail::TimePoint::max());
    void check(const Reply& reply, std::string_view about, std::string_view name);
    void connect(detail::TimePoint limit = detail::TimePoint::max());
    [[nodiscard]] std::string describe(std::string_view about, std::string_view name) const;
    Reply await(std::string_view about, std::string_view name, std::string_view bytes);
    Reply exchange(std::string_view about, std::string_view name, std::string_view bytes);

    Endpoint m_endpoint;
    std::unique_ptr<detail::Stream> m_stream;
    detail::KeptStream* m_left = nullptr; ///< gets one that another node replaces
    detail::TimePoint m_connected_at;
    bool m_replaced = false;
    bool m_pinned = false;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/redis/connection.ipp>
#endif
