// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Stops all workers of a queue, on all hosts, from taking jobs until it is resumed.

#include <orizuru/connection.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <string>
#include <utility>

namespace orizuru {

/// Pauses one queue: one connection, used by one thread at a time.
///
/// A Worker notices within WorkerOptions::recheck (1 s); it still handles the jobs that it has
/// taken. Plain Consumers do not look. Each call is one command, blocks at most command_timeout,
/// and throws ConnectionError, ReplyError and ProtocolError.
class Pause {
  public:
    /// Connects. Throws as Producer's constructor does.
    Pause(Endpoint endpoint, std::string queue)
        : m_paused(Keys(std::move(queue)).paused()),
          m_connection(detail::Route::to_key(std::move(endpoint), m_paused)) {}

    /// Stays until it is resumed. Redis: SET, O(1); refused as OOM when Redis' memory is full.
    void pause() { m_connection.command(m_paused, "SET", m_paused, "1"); }
    /// Redis: DEL, O(1).
    void resume() { m_connection.command(m_paused, "DEL", m_paused); }
    /// Redis: EXISTS, O(1).
    [[nodiscard]] bool paused() {
        const Reply reply = m_connection.command(m_paused, "EXISTS", m_paused);
        detail::require_type(m_connection, reply, Reply::Type::integer, "EXISTS");
        return reply.integer != 0;
    }

  private:
    std::string m_paused;
    Connection m_connection;
};

} // namespace orizuru
