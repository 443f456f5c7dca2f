// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Hides possible passwords in an address that failed to parse, for error messages.

#include <orizuru/detail/base/joined.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// True if addresses may begin with it.
[[nodiscard]] [[gnu::cold]] inline bool is_scheme(std::string_view word) noexcept {
    constexpr std::string_view schemes[] = {"redis", "rediss", "valkey", "valkeys"};
    constexpr std::string_view topologies[] = {"", "+sentinel", "+cluster"};
    const auto plus = std::min(word.find('+'), word.size());
    return word == "unix" || (std::ranges::count(schemes, word.substr(0, plus)) != 0 &&
                              std::ranges::count(topologies, word.substr(plus)) != 0);
}

/// Any part of a text that failed to parse may be a misplaced password. This shows what can hardly
/// be one: a known scheme, the host, a port of at most five digits and, without a host, a path.
[[nodiscard]] [[gnu::cold]] inline std::string redacted(std::string_view uri) {
    constexpr std::string_view hidden = "***";
    std::string_view shown;
    if (const auto end = uri.find("://"); end != std::string_view::npos) {
        const std::string_view scheme = uri.substr(0, end);
        if (!is_scheme(scheme)) {
            return std::string(hidden);
        }
        shown = uri.substr(0, end + 3);
        uri.remove_prefix(end + 3);
    }
    std::string_view authority = uri.substr(0, uri.find_first_of("/?#"));
    const std::string_view tail = uri.substr(authority.size());
    if (tail.find('@') != std::string_view::npos) {
        return joined({shown, hidden});
    }
    authority = authority.substr(authority.rfind('@') + 1);
    if (authority.empty()) {
        const bool path = shown.empty() || shown.starts_with("unix");
        return joined({shown, path ? tail.substr(0, tail.find_first_of("?#")) : ""});
    }
    const bool v6 = authority.starts_with('[') && authority.find(']') != std::string_view::npos;
    const auto host = authority.substr(0, v6 ? authority.find(']') + 1 : authority.find(':'));
    const auto port = authority.substr(host.size());
    if (port.empty() || (!host.empty() && port.starts_with(':') && port.size() <= 6 &&
                         port.find_first_not_of("0123456789", 1) == std::string_view::npos)) {
        return joined({shown, authority});
    }
    return joined({shown, v6 ? "" : host, v6 ? "" : ":", hidden});
}

} // namespace orizuru::detail
