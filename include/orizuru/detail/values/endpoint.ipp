// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of endpoint.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/node_list.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/uri.hpp>

#include <memory>
#include <stdexcept>
#include <utility>

namespace orizuru {

ORIZURU_INLINE Endpoint::Endpoint(std::string_view uri)
    : Endpoint(detail::EndpointParts{.address = detail::UriParser(uri).parse()}) {
    if (m_parts.address->tls) {
        throw std::invalid_argument(detail::joined(
            {"Redis address '", address(), "': tls_endpoint() of <orizuru/tls.hpp> takes it"}));
    }
}

ORIZURU_INLINE Endpoint::Endpoint(detail::EndpointParts&& parts) : m_parts(std::move(parts)) {
    if (!m_parts.address->nodes.empty()) {
        m_parts.nodes = std::make_shared<detail::NodeList>(m_parts.address->nodes);
    }
}

ORIZURU_INLINE Endpoint detail::EndpointParts::join(EndpointParts parts) {
    return Endpoint(std::move(parts));
}

ORIZURU_INLINE std::string Endpoint::address() const {
    const detail::Address& parts = *m_parts.address;
    const detail::Digits number(parts.db);
    const std::string_view database = parts.db == 0 ? std::string_view() : number;
    if (!parts.path.empty()) {
        return detail::joined({"unix://", parts.path, database.empty() ? "" : "?db=", database});
    }
    const std::string_view scheme = parts.tls ? "rediss" : "redis";
    const std::string_view slash = database.empty() ? "" : "/";
    if (parts.nodes.empty()) {
        return detail::joined({scheme, "://", detail::to_text(parts.server), slash, database});
    }
    std::string nodes;
    for (const detail::Node& node : parts.nodes) {
        nodes += detail::joined({nodes.empty() ? "" : ",", detail::to_text(node)});
    }
    const bool cluster = parts.topology == detail::Topology::cluster;
    return detail::joined({scheme, cluster ? "+cluster://" : "+sentinel://", nodes,
                           cluster ? "" : "/", parts.service, slash, database});
}

} // namespace orizuru
