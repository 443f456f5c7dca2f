// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The servers of an address with several, in the order in which they are asked. Any thread.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// As an address has it.
[[nodiscard]] [[gnu::cold]] inline std::string to_text(const Node& node) {
    const bool v6 = node.host.find(':') != std::string::npos;
    return joined({v6 ? "[" : "", node.host, v6 ? "]" : "", ":", Digits(node.port)});
}

/// Where a Cluster keeps a key, as far as it is known. Any thread.
class KeyPlace {
  public:
    explicit KeyPlace(std::string key) : m_key(std::move(key)) {}

    [[nodiscard]] const std::string& key() const noexcept { return m_key; }
    [[nodiscard]] std::optional<Node> node() const {
        const std::lock_guard lock(m_mutex);
        return m_node;
    }
    void set(std::optional<Node> node) {
        const std::lock_guard lock(m_mutex);
        m_node = std::move(node);
    }

  private:
    std::string m_key;
    mutable std::mutex m_mutex;
    std::optional<Node> m_node;
};

class NodeList {
  public:
    explicit NodeList(std::vector<Node> nodes) : m_nodes(std::move(nodes)) {}

    [[nodiscard]] std::vector<Node> in_order() const {
        const std::lock_guard lock(m_mutex);
        return m_nodes;
    }
    /// The first is asked last from now on.
    void skip_first() {
        const std::lock_guard lock(m_mutex);
        std::rotate(m_nodes.begin(), m_nodes.begin() + 1, m_nodes.end());
    }
    /// It is asked last from now on.
    void skip(const Node& node) {
        const std::lock_guard lock(m_mutex);
        const auto found = std::ranges::find(m_nodes, node);
        if (found != m_nodes.end()) {
            std::rotate(found, found + 1, m_nodes.end());
        }
    }
    /// Adds a node that is not there, as the last; none of the others is dropped.
    void learn(Node node) {
        const std::lock_guard lock(m_mutex);
        if (m_nodes.size() < most && std::ranges::find(m_nodes, node) == m_nodes.end()) {
            m_nodes.push_back(std::move(node));
        }
    }

  private:
    /// No more are kept: a wrong sentinel could name any number.
    static constexpr std::size_t most = 32;

    mutable std::mutex m_mutex;
    std::vector<Node> m_nodes;
};

} // namespace orizuru::detail
