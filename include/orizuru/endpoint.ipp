// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of endpoint.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/uri.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

ORIZURU_INLINE Endpoint::Endpoint(std::string_view uri)
    : m_address(detail::UriParser(uri).parse()) {
    if (m_address->tls) {
        throw std::invalid_argument(detail::joined(
            {"Redis address '", address(), "': tls_endpoint() of <orizuru/tls.hpp> takes it"}));
    }
}

ORIZURU_INLINE Endpoint::Endpoint(std::shared_ptr<const detail::Address> address,
                                  std::shared_ptr<const detail::Security> security) noexcept
    : m_address(std::move(address)), m_security(std::move(security)) {}

ORIZURU_INLINE std::string Endpoint::address() const {
    const detail::Digits number(db());
    const std::string_view database = db() == 0 ? std::string_view() : number;
    if (!path().empty()) {
        return detail::joined({"unix://", path(), database.empty() ? "" : "?db=", database});
    }
    const bool v6 = host().find(':') != std::string::npos;
    return detail::joined({m_address->tls ? "rediss://" : "redis://", v6 ? "[" : "", host(),
                           v6 ? "]" : "", ":", detail::Digits(port()), database.empty() ? "" : "/",
                           database});
}

} // namespace orizuru
