// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The connections for one kind of work on many queues: one for all, and in a Cluster one for each
// hash tag. Queues with the same tag are in one slot, so on one node.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/redis/route.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>

#include <map>
#include <memory>
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
    /// Connects where there is none yet, and throws as Connection does.
    [[nodiscard]] const std::shared_ptr<Connection>& of(const Keys& keys) {
        return of(group_of(m_endpoint, keys), keys.source());
    }
    /// The same for the set of all queues.
    [[nodiscard]] const std::shared_ptr<Connection>& of_queues() {
        const auto topology = EndpointParts::of(m_endpoint).address->topology;
        return of(topology == Topology::cluster ? Keys::queues() : "", Keys::queues());
    }

  private:
    const std::shared_ptr<Connection>& of(const std::string& group, const std::string& key) {
        std::shared_ptr<Connection>& connection = m_connections[group];
        if (!connection) {
            connection = std::make_shared<Connection>(Route::to_key(m_endpoint, key));
        }
        return connection;
    }

    Endpoint m_endpoint;
    std::map<std::string, std::shared_ptr<Connection>> m_connections;
};

} // namespace orizuru::detail
