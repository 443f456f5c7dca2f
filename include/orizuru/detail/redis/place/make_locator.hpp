// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Which of the places an endpoint's is.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/redis/place/cluster.hpp>
#include <orizuru/detail/redis/place/locator.hpp>
#include <orizuru/detail/redis/place/sentinels.hpp>
#include <orizuru/endpoint.hpp>

#include <memory>

namespace orizuru::detail {

/// Null if the address itself says where Redis is. `share`: how long one server may take.
[[nodiscard]] [[gnu::cold]] inline std::unique_ptr<Locator> make_locator(const Endpoint& endpoint,
                                                                         Clock::duration share) {
    const EndpointParts& parts = EndpointParts::of(endpoint);
    if (!parts.nodes) {
        return nullptr;
    }
    if (parts.address->topology == Topology::sentinels) {
        return std::make_unique<Sentinels>(parts.nodes, parts.address->service, endpoint.address(),
                                           share);
    }
    if (parts.place) {
        return std::make_unique<NodeOfKey>(parts.nodes, parts.place);
    }
    return std::make_unique<Locator>(parts.nodes);
}

} // namespace orizuru::detail
