// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Whether the living have had the time to be heard: after a restart or a failover of Redis, and
// after a collector's connection was lost, their heartbeats are gone although they live.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/redis/server_info.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
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
    void look_for_promotion(const Connection& connection, std::string_view info);

    std::chrono::milliseconds m_time;
    std::string m_policy;
    TimePoint m_over{};     ///< when the connection was made on which it is over
    TimePoint m_refused{};  ///< when the connection was made on which INFO is refused
    TimePoint m_asked{};    ///< when the connection was made on which INFO was asked last
    TimePoint m_promoted{}; ///< when the server was seen to be another's successor since then
    std::string m_history;  ///< the name of its replication history then
};

inline bool Grace::over(Connection& connection) {
    const std::optional<std::string> info = ask(connection);
    m_policy = info ? detail::evicting_policy(*info) : std::string_view();
    if (info) {
        look_for_promotion(connection, *info);
    }
    m_over = {};
    if (info && uptime(*info) < m_time) {
        return false;
    }
    // Redis' uptime says nothing of a time in which it was out of reach, or a replica.
    const TimePoint since = std::max(connection.connected_at(), m_promoted);
    const bool by_uptime = info && !connection.replaced() && !was_replica(*info);
    if (!by_uptime && Clock::now() - since < m_time) {
        return false;
    }
    m_over = connection.connected_at();
    return true;
}

/// A server can become a replica and a primary again while a connection stays open. A new history
/// alone does not say so: a server begins one with its first replica, too.
inline void Grace::look_for_promotion(const Connection& connection, std::string_view info) {
    const std::string_view history = info_field(info, "master_replid");
    if (m_asked == connection.connected_at() && m_history != history && was_replica(info)) {
        m_promoted = Clock::now();
    }
    m_asked = connection.connected_at();
    m_history = history;
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
