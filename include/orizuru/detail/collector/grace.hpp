// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tells whether live consumers have had the time to beat. After a restart or failover of Redis, or
// after a collector lost its connection, their heartbeats are gone although they live.

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

    /// Whether the grace is over. Redis: INFO, unless this connection was refused it. Throws as
    /// Connection::command, except for that refusal.
    bool over(Connection& connection) {
        const std::optional<std::string> info = ask(connection);
        m_policy = info ? detail::evicting_policy(*info) : std::string_view();
        if (info) {
            look_for_promotion(connection, *info);
        }
        m_asked = connection.connected_at();
        m_ask_again = deadline_in(std::chrono::minutes(1));
        m_over = {};
        if (info && uptime(*info) < m_time) {
            return false;
        }
        // Redis' uptime includes times in which it was out of reach, or a replica.
        const TimePoint since = std::max(connection.connected_at(), m_promoted);
        const bool by_uptime = info && !connection.replaced() && !was_replica(*info);
        if (!by_uptime && Clock::now() - since < m_time) {
            return false;
        }
        m_over = connection.connected_at();
        return true;
    }
    /// Whether over() was called on this connection within a minute.
    [[nodiscard]] bool asked_lately(const Connection& connection) const noexcept {
        return m_asked == connection.connected_at() && Clock::now() < m_ask_again;
    }
    /// Whether the last over() returned true, on this connection.
    [[nodiscard]] bool was_over(const Connection& connection) const noexcept {
        return m_over == connection.connected_at();
    }
    /// Redis' policy if it may evict keys; empty if it may not, or did not say.
    [[nodiscard]] const std::string& evicting_policy() const noexcept { return m_policy; }

  private:
    /// Returns nullopt when INFO is refused.
    std::optional<std::string> ask(Connection& connection) {
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
    /// A server can become a primary while a connection stays open, also before the first INFO. A
    /// new history alone does not prove it: a server also begins one with its first replica.
    void look_for_promotion(const Connection& connection, std::string_view info) {
        const std::string_view history = info_field(info, "master_replid");
        const bool known = m_asked == connection.connected_at() && m_history == history;
        if (!known && was_replica(info)) {
            m_promoted = Clock::now();
        }
        m_history = history;
    }

    std::chrono::milliseconds m_time;
    std::string m_policy;
    TimePoint m_over{};      ///< when the connection was made on which the grace is over
    TimePoint m_refused{};   ///< when the connection was made on which INFO is refused
    TimePoint m_asked{};     ///< when the connection was made on which INFO was asked last
    TimePoint m_ask_again{}; ///< a minute after that
    TimePoint m_promoted{};  ///< when the server was seen promoted on that connection
    std::string m_history;   ///< name of its replication history at that INFO
};

} // namespace orizuru::detail
