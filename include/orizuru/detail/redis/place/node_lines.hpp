// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets the Connections to many keys of a Cluster share one line to each node: each borrows its
// node's while it works. Elsewhere, a Connection keeps a line of its own.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/node_list.hpp>
#include <orizuru/detail/redis/kept_stream.hpp>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Any thread.
class NodeLines {
  public:
    class Loan;

  private:
    struct Line {
        Node node;
        bool lent = false;
        MadeStream made{}; ///< without a stream: lent, or not connected
    };

    [[nodiscard]] Line& at(const Node& node) {
        const auto found = std::ranges::find(m_lines, node, &Line::node);
        return found != m_lines.end() ? *found : m_lines.emplace_back(Line{.node = node});
    }

    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_returned;
    std::vector<Line> m_lines;
};

/// While it exists, the connection has the line of the node that it leads to. At the end, the line
/// belongs to the node that it has come to, unless that has one.
class [[nodiscard]] NodeLines::Loan {
  public:
    /// Waits while another connection has the line.
    Loan(NodeLines& lines, Connection& connection)
        : m_lines(lines), m_borrower(KeptStream::of(connection)) {
        const auto& place = EndpointParts::of(connection.endpoint()).place;
        m_node = place ? place->node() : std::nullopt;
        if (!m_node) {
            return;
        }
        std::unique_lock lock(m_lines.m_mutex);
        m_lines.m_returned.wait(lock, [this] { return !m_lines.at(*m_node).lent; });
        Line& line = m_lines.at(*m_node);
        line.lent = true;
        if (line.made.stream) {
            line.made.stream->lead_to(place);
        }
        m_borrower.borrow(std::exchange(line.made, {}), m_left);
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
        if (!m_node) {
            return;
        }
        MadeStream own = m_borrower.release();
        const std::lock_guard lock(m_lines.m_mutex);
        m_lines.at(*m_node).lent = false;
        try {
            give_back(std::move(m_left));
            give_back(std::move(own));
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
            // Without a place for it, the line ends.
        }
        m_lines.m_returned.notify_all();
    }

  private:
    void give_back(MadeStream made) {
        if (!made.stream) {
            return;
        }
        Line& line = m_lines.at(made.stream->server());
        if (!line.lent && !line.made.stream) {
            line.made = std::move(made);
        }
    }

    NodeLines& m_lines;
    KeptStream& m_borrower;
    std::optional<Node> m_node;
    MadeStream m_left{}; ///< the line, when the node has referred to another one
};

} // namespace orizuru::detail
