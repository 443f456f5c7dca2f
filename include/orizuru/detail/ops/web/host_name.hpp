// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The name of a host in what a browser sends.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail::web {

[[nodiscard]] inline std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    });
    return result;
}

/// A host with a port or without one, in small letters: "localhost" for "Localhost:8080", "[::1]"
/// for "[::1]:8080". Nothing for what is none: no part of it may be passed over.
[[nodiscard]] inline std::optional<std::string> host_name(std::string_view host) {
    const bool address = host.starts_with('[');
    const std::size_t end = address ? host.find(']') : std::min(host.find(':'), host.size());
    if (end == std::string_view::npos || end == 0) {
        return std::nullopt;
    }
    std::string name = lower(host.substr(0, address ? end + 1 : end));
    const std::string_view inside =
        std::string_view(name).substr(address ? 1 : 0, address ? name.size() - 2 : name.size());
    const std::string_view rest = host.substr(name.size());
    const bool named =
        inside.find_first_not_of(address ? "0123456789abcdef:."
                                         : "0123456789abcdefghijklmnopqrstuvwxyz._-") ==
        std::string_view::npos;
    const std::string_view port = rest.substr(std::min<std::size_t>(rest.size(), 1));
    const bool ported =
        rest.empty() || (rest.starts_with(':') && port.size() <= 5 &&
                         port.find_first_not_of("0123456789") == std::string_view::npos);
    return named && ported ? std::optional(std::move(name)) : std::nullopt;
}

} // namespace orizuru::detail::web
