// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Waits in Redis until somebody schedules a message that is due earlier than all before it: the
// producer's script then puts an element into the queue's wake list. One connection waits for any
// number of queues.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/redis/begun_command.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// One thread's at a time.
class WakeLists {
  public:
    /// Connects. In a Cluster, all queues must be in one slot. Throws as Connection does.
    WakeLists(const std::vector<Keys>& queues, Endpoint endpoint)
        : m_connection(std::move(endpoint)) {
        for (const Keys& queue : queues) {
            m_lists.push_back(queue.scheduled_wake());
        }
    }

    /// Returns the position of a queue whose schedule has changed; nothing at `until` or a stop.
    /// Redis: BLPOP, which goes on between the calls. Connects again where it has to, for at most
    /// connect_timeout. Throws as Connection::command does.
    std::optional<std::size_t> wait(TimePoint until, const std::stop_token& token);

  private:
    // In seconds; long enough to repeat rarely, short enough that Redis soon forgets a vanished
    // client.
    static constexpr int longest = 5;

    std::vector<std::string> m_lists;
    Connection m_connection;
    BegunCommand m_command;
};

inline std::optional<std::size_t> WakeLists::wait(TimePoint until, const std::stop_token& token) {
    if (!m_command.begun()) {
        std::string bytes;
        begin_command(bytes, m_lists.size() + 2);
        append_argument(bytes, "BLPOP");
        for (const std::string& key : m_lists) {
            append_argument(bytes, key);
        }
        append_argument(bytes, longest);
        m_command.begin(m_connection, "BLPOP", bytes);
    }
    const auto reply = m_command.finish(m_connection, until, token);
    if (!reply || reply->elements.empty()) {
        return std::nullopt;
    }
    const auto key = std::ranges::find(m_lists, reply->elements.front().text);
    if (key == m_lists.end()) {
        refuse(m_connection, "BLPOP");
    }
    return static_cast<std::size_t>(key - m_lists.begin());
}

} // namespace orizuru::detail
