// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Whether the living have had the time to be heard: after a restart or a failover of Redis, and
// after a collector's connection was lost, their heartbeats are gone although they live.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/server_info.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class Grace {
  public:
    explicit Grace(std::chrono::milliseconds time) : m_time(time) {}

    /// Whether it is over. Redis: INFO, unless it was refused on this connection. Throws as
    /// Connection::command, but for that refusal.
    bool over(Connection& connection);
    /// Whether it was, on this connection.
    [[nodiscard]] bool was_over(const Connection& connection) const noexcept {
        return m_over == connection.connected_at();
    }
    /// The policy by which Redis may evict keys; empty when it will not, or did not say.
    [[nodiscard]] const std::string& evicting_policy() const noexcept { return m_policy; }

  private:
    /// None when it is refused.
    std::optional<std::string> ask(Connection& connection);

    std::chrono::milliseconds m_time;
    std::string m_policy;
    TimePoint m_over{};    ///< when the connection was made on which it is over
    TimePoint m_refused{}; ///< when the connection was made on which INFO is refused
};

inline bool Grace::over(Connection& connection) {
    const std::optional<std::string> info = ask(connection);
    m_policy = info ? detail::evicting_policy(*info) : std::string_view();
    if (info && uptime(*info) < m_time) {
        return false;
    }
    // Redis' uptime says nothing of a time in which it was out of reach, or a replica.
    const TimePoint since = connection.connected_at();
    const bool by_uptime = info && !connection.replaced() && !was_replica(*info);
    if (!by_uptime && Clock::now() - since < m_time) {
        return false;
    }
    m_over = since;
    return true;
}

inline std::optional<std::string> Grace::ask(Connection& connection) {
    if (m_refused == connection.connected_at()) {
        return std::nullopt;
    }
    try {
        Reply info = connection.command("", "INFO", "server", "memory", "replication");
        connection.require(info, Reply::Type::string, "INFO");
        return std::move(info.text);
    } catch (const ReplyError& error) {
        if (error.code() != "NOPERM") {
            throw;
        }
        m_refused = connection.connected_at();
        return std::nullopt;
    }
}

} // namespace orizuru::detail
