// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The nodes of a Cluster that have slots.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/node_list.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <vector>

namespace orizuru::detail {

/// As one node tells. Throws as Connection does.
[[nodiscard]] inline std::vector<Node> masters_told_by(const Endpoint& cluster,
                                                       const Node& teller) {
    Connection connection(Route::to_node(cluster, teller));
    const Reply ranges = connection.command("a Cluster's nodes", "CLUSTER", "SLOTS");
    require_type(connection, ranges, Reply::Type::array, "CLUSTER");
    std::vector<Node> masters;
    for (const Reply& range : ranges.elements) {
        // Its first and last slot, then nodes, the master first: host, port and more.
        if (range.elements.size() < 3 || range.elements[2].elements.size() < 2) {
            refuse(connection, "CLUSTER");
        }
        const std::vector<Reply>& parts = range.elements[2].elements;
        const std::optional<Node> node =
            node_of(host_of(parts[0].text, teller), Digits(parts[1].integer));
        if (!node) {
            refuse(connection, "CLUSTER");
        }
        if (std::ranges::find(masters, *node) == masters.end()) {
            masters.push_back(*node);
        }
    }
    return masters;
}

/// As the first node that answers tells. Throws as Connection does when none answers.
[[nodiscard]] inline std::vector<Node> masters_of(const Endpoint& cluster) {
    std::exception_ptr failure;
    for (const Node& teller : EndpointParts::of(cluster).nodes->in_order()) {
        try {
            return masters_told_by(cluster, teller);
        } catch (const ConnectionError&) {
            failure = std::current_exception();
        }
    }
    std::rethrow_exception(failure);
}

} // namespace orizuru::detail
