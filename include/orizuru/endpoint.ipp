// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of endpoint.hpp.

#include <orizuru/detail/base/uri.hpp>

#include <string>
#include <string_view>

namespace orizuru {

ORIZURU_INLINE Endpoint::Endpoint(std::string_view uri)
    : m_address(detail::UriParser(uri).parse()) {}

ORIZURU_INLINE std::string Endpoint::address() const {
    if (!path().empty()) {
        return "unix://" + path() + (db() == 0 ? "" : "?db=" + std::to_string(db()));
    }
    const bool v6 = host().find(':') != std::string::npos;
    return "redis://" + (v6 ? "[" + host() + "]" : host()) + ":" + std::to_string(port()) +
           (db() == 0 ? "" : "/" + std::to_string(db()));
}

} // namespace orizuru
