// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of endpoint.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/uri.hpp>

#include <string>
#include <string_view>

namespace orizuru {

ORIZURU_INLINE Endpoint::Endpoint(std::string_view uri)
    : m_address(detail::UriParser(uri).parse()) {}

ORIZURU_INLINE std::string Endpoint::address() const {
    const detail::Digits number(db());
    const std::string_view database = db() == 0 ? std::string_view() : number;
    if (!path().empty()) {
        return detail::joined({"unix://", path(), database.empty() ? "" : "?db=", database});
    }
    const bool v6 = host().find(':') != std::string::npos;
    return detail::joined({"redis://", v6 ? "[" : "", host(), v6 ? "]" : "", ":",
                           detail::Digits(port()), database.empty() ? "" : "/", database});
}

} // namespace orizuru
