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
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

ORIZURU_INLINE Endpoint::Endpoint(std::string_view uri)
    : Endpoint(detail::UriParser(uri).parse(), nullptr) {
    if (m_address->tls) {
        throw std::invalid_argument(detail::joined(
            {"Redis address '", address(), "': tls_endpoint() of <orizuru/tls.hpp> takes it"}));
    }
}

ORIZURU_INLINE Endpoint::Endpoint(std::shared_ptr<const detail::Address> address,
                                  std::shared_ptr<const detail::Security> security)
    : m_address(std::move(address)),
      m_security(std::move(security)),
      m_nodes(m_address->nodes.empty() ? nullptr
                                       : std::make_shared<detail::NodeList>(m_address->nodes)) {}

ORIZURU_INLINE std::string Endpoint::address() const {
    const detail::Digits number(db());
    const std::string_view database = db() == 0 ? std::string_view() : number;
    if (!path().empty()) {
        return detail::joined({"unix://", path(), database.empty() ? "" : "?db=", database});
    }
    const std::string_view scheme = m_address->tls ? "rediss" : "redis";
    const std::string_view slash = database.empty() ? "" : "/";
    if (m_address->nodes.empty()) {
        return detail::joined({scheme, "://", detail::to_text({host(), port()}), slash, database});
    }
    std::string nodes;
    for (const detail::Node& node : m_address->nodes) {
        nodes += detail::joined({nodes.empty() ? "" : ",", detail::to_text(node)});
    }
    const bool cluster = m_address->topology == detail::Topology::cluster;
    return detail::joined({scheme, cluster ? "+cluster://" : "+sentinel://", nodes,
                           cluster ? "" : "/", m_address->service, slash, database});
}

} // namespace orizuru
