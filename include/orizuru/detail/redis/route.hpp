// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where the server of an endpoint is found, when its address does not say it.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/node_list.hpp>
#include <orizuru/endpoint.hpp>

#include <memory>
#include <string>
#include <utility>

namespace orizuru::detail {

struct Route {
    /// The sentinels, which all copies of the endpoint share; null without sentinels.
    [[nodiscard]] static NodeList* nodes(const Endpoint& endpoint) noexcept {
        return endpoint.m_nodes.get();
    }
    /// The name under which sentinels know the master.
    [[nodiscard]] static const std::string& service(const Endpoint& endpoint) noexcept {
        return endpoint.m_address->service;
    }
    /// The endpoint of one of its sentinels.
    [[nodiscard]] static Endpoint to_sentinel(const Endpoint& endpoint, const Node& sentinel) {
        auto address = std::make_shared<Address>();
        address->host = sentinel.host;
        address->port = sentinel.port;
        address->user = endpoint.m_address->sentinel_user;
        address->password = endpoint.m_address->sentinel_password;
        address->tls = endpoint.m_address->tls;
        return {std::move(address), endpoint.m_security};
    }
};

} // namespace orizuru::detail
