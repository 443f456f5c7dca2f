// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A connection to Redis that sends a command and waits for its reply. The collector and the tools
// use it, and your code can. A producer drives the stream itself: it has two LPUSHes in flight.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace orizuru {

namespace detail {
class KeptStream;
} // namespace detail

/// A connection to Redis for commands of your own, for one thread at a time.
///
/// It repeats a command by itself only when a Cluster node has refused it because another node has
/// the key. A ConnectionError or ProtocolError closes it; the next command connects again, within
/// connect_timeout. When a command finds the connection closed before it sends anything, it
/// reconnects without an error, since nothing can have been lost.
class Connection {
  public:
    /// Connects. Throws ConnectionError within connect_timeout (name resolution excluded),
    /// ReplyError when Redis refuses the credentials or the database.
    explicit Connection(Endpoint endpoint);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    /// Takes over the connection; a call on the other one then throws std::logic_error.
    Connection(Connection&&) noexcept;
    /// Closes its own connection and takes over that of the other one, as the constructor does.
    Connection& operator=(Connection&&) noexcept;
    ~Connection();

    /// The address as it was given. Valid as long as this connection; throws std::logic_error when
    /// it was moved from.
    [[nodiscard]] const Endpoint& endpoint() const;

    /// Sends one command and waits for its reply, at most command_timeout. Each argument is a text,
    /// an integer, or a range of texts, each of which is an argument: a vector of strings, a span.
    ///
    /// Throws: ReplyError for an error reply (the command did not run); ConnectionError, whose
    ///     in_doubt() says whether any byte was sent; ProtocolError. Messages name `about`.
    template <class... Arguments>
    Reply command(std::string_view about, std::string_view name, const Arguments&... arguments) {
        std::string bytes;
        detail::append_command(bytes, name, arguments...);
        return exchange(about, name, bytes);
    }

  private:
    friend class detail::KeptStream;

    Reply exchange(std::string_view about, std::string_view name, std::string_view bytes);

    detail::Owned<std::unique_ptr<detail::KeptStream>, "connection"> m_kept;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/redis/connection.ipp>
#endif
