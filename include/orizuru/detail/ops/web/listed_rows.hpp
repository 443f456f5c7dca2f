// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The messages of one page, which are few where they are large: a step finds each of them again.

#include <orizuru/detail/ops/web/dashboard_json.hpp>
#include <orizuru/detail/ops/web/listed_messages.hpp>
#include <orizuru/detail/ops/web/message_view.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace orizuru::detail::web {

/// Rows that are shown, of messages that ListedMessages keeps together.
class ListedRows {
  public:
    /// Takes up to `most` messages of the queue. All three outlive it.
    ListedRows(ListedMessages& listed, const MessageView& view, const std::string& queue,
               std::size_t most)
        : m_listed(listed), m_view(view), m_queue(queue), m_most(most) {}

    /// False when there are enough, or the first ones would be forgotten for this one: it is not
    /// taken, nor is any later one.
    bool add(PlacedMessage message) {
        const std::size_t bytes = m_bytes + message.bytes.size();
        m_full = full() || (bytes > most_kept && !m_rows.empty());
        if (m_full) {
            return false;
        }
        m_bytes = bytes;
        const auto [id, kept] = m_listed.keep(m_queue, std::move(message));
        m_rows.push_back(m_view.row(id, *kept));
        return true;
    }
    [[nodiscard]] bool full() const {
        return m_full || m_bytes >= enough || m_rows.size() >= m_most;
    }
    [[nodiscard]] std::size_t size() const { return m_rows.size(); }
    [[nodiscard]] Json take() && { return std::move(m_rows); }

  private:
    static constexpr std::size_t enough = std::size_t{8} << 20;
    /// ListedMessages counts their payloads, too.
    static constexpr std::size_t most_kept = std::size_t{30} << 20;

    ListedMessages& m_listed;
    const MessageView& m_view;
    const std::string& m_queue;
    const std::size_t m_most;
    Json m_rows = Json::array();
    std::size_t m_bytes = 0;
    bool m_full = false;
};

} // namespace orizuru::detail::web
