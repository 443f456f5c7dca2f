// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The connections for one kind of work on many queues: one for all, and in a Cluster one for each
// hash tag, but not for more than 128, of which the one goes that was not asked for the longest.
// Those whose queues are on the same node take turns at one line.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/redis/place/node_lines.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::detail {

/// The tag in a Cluster; else the same for all queues.
[[nodiscard]] inline std::string group_of(const Endpoint& endpoint, const Keys& keys) {
    if (EndpointParts::of(endpoint).address->topology != Topology::cluster) {
        return {};
    }
    const std::string key = keys.dead();
    const auto open = key.find('{');
    return key.substr(open, key.find('}') - open + 1);
}

/// For one thread at a time.
class QueueConnections {
  public:
    explicit QueueConnections(Endpoint endpoint) : m_endpoint(std::move(endpoint)) {}

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }
    /// Connects where there is none yet, and throws as Connection does. The reference is good until
    /// the next call.
    [[nodiscard]] const std::shared_ptr<Connection>& of(const Keys& keys) {
        return of(group_of(m_endpoint, keys), keys.source());
    }
    /// Does the same for the set of all queues.
    [[nodiscard]] const std::shared_ptr<Connection>& of_queues() {
        const auto topology = EndpointParts::of(m_endpoint).address->topology;
        return of(topology == Topology::cluster ? Keys::queues() : "", Keys::queues());
    }

  private:
    struct Item {
        std::shared_ptr<Connection> connection;
        std::uint64_t asked; ///< State::asked when it was asked for last
    };
    struct State {
        std::map<std::string, Item> connections;
        std::uint64_t asked = 0;
        NodeLines lines;
        std::optional<NodeLines::Loan> loan; ///< for the connection that was asked for last
    };
    // Anyone who can ask chooses names of queues.
    static constexpr std::size_t most = 128;

    const std::shared_ptr<Connection>& of(const std::string& group, const std::string& key) {
        m_state->loan.reset();
        const auto& connection = connected(group, key);
        m_state->loan.emplace(m_state->lines, *connection);
        return connection;
    }
    const std::shared_ptr<Connection>& connected(const std::string& group, const std::string& key) {
        auto& connections = m_state->connections;
        const auto found = connections.find(group);
        if (found != connections.end()) {
            found->second.asked = ++m_state->asked;
            return found->second.connection;
        }
        Item item{std::make_shared<Connection>(Route::to_key(m_endpoint, key)), ++m_state->asked};
        if (connections.size() == most) {
            const auto oldest = std::ranges::min_element(
                connections, {}, [](const auto& connected) { return connected.second.asked; });
            connections.erase(oldest);
        }
        return connections.emplace(group, std::move(item)).first->second.connection;
    }

    Endpoint m_endpoint;
    std::unique_ptr<State> m_state = std::make_unique<State>(); ///< can be moved
};

} // namespace orizuru::detail
