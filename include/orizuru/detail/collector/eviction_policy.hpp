// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Looks now and then whether Redis may evict the keys of a queue.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/server_info.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <string>

namespace orizuru::detail {

class EvictionPolicy {
  public:
    /// Returns the policy if Redis may evict keys and this has not been told yet; else an empty
    /// string. Redis: INFO for each connection and each minute, unless it is refused. Throws as
    /// Connection::command, except for that refusal.
    std::string news(Connection& connection) {
        if (m_told || (m_asked == connected_at(connection) && Clock::now() < m_ask_again)) {
            return {};
        }
        try {
            const Reply info = connection.command("", "INFO", "memory");
            require_type(connection, info, Reply::Type::string, "INFO");
            m_ask_again = deadline_in(std::chrono::minutes(1));
            m_asked = connected_at(connection);
            std::string policy(evicting_policy(info.text));
            m_told = !policy.empty();
            return policy;
        } catch (const ReplyError& error) {
            if (error.code() != "NOPERM") {
                throw;
            }
            m_ask_again = TimePoint::max();
            m_asked = connected_at(connection);
            return {};
        }
    }

  private:
    TimePoint m_asked{}; ///< connected_at() of the connection asked last
    TimePoint m_ask_again{};
    bool m_told = false;
};

} // namespace orizuru::detail
