// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Operations of the library's parts on a Connection, besides its commands.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/reply.hpp>

#include <concepts>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Returns a connection that a user has given. Throws std::invalid_argument for null.
[[nodiscard]] inline std::shared_ptr<Connection> given(std::shared_ptr<Connection> connection) {
    if (!connection) {
        throw std::invalid_argument("the connection must not be null");
    }
    return connection;
}

/// Returns when the connection's stream was made; if it was lost, when that one was made.
[[nodiscard]] TimePoint connected_at(Connection& connection);

/// Connects again if the stream was lost.
void ensure_connected(Connection& connection);

/// Sends one command, given as bytes, and waits for its reply; throws as Connection::command.
Reply exchange(Connection& connection, std::string_view about, std::string_view name,
               std::string_view bytes);

/// Does the same for a command that `write` appends to the output.
template <std::invocable<std::string&> Write>
Reply exchange(Connection& connection, std::string_view about, std::string_view name, Write write) {
    std::string bytes;
    write(bytes);
    return exchange(connection, about, name, std::string_view(bytes));
}

/// Drops the stream and throws ProtocolError: `name` cannot have such a reply.
[[noreturn]] void refuse(Connection& connection, std::string_view name);

/// Refuses `reply` unless it has this type.
void require_type(Connection& connection, const Reply& reply, Reply::Type type,
                  std::string_view name);

} // namespace orizuru::detail
