// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Percent-encoding, and the parameters of a query.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru::detail::web {

/// Any bytes, as encodeURIComponent writes those of a text.
[[nodiscard]] inline std::string percent_encoded(std::string_view bytes) {
    constexpr std::string_view plain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'()";
    std::string text;
    for (const char c : bytes) {
        if (plain.find(c) != std::string_view::npos) {
            text += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            text += '%';
            text += "0123456789ABCDEF"[byte >> 4U];
            text += "0123456789ABCDEF"[byte & 15U];
        }
    }
    return text;
}

/// Returns nothing when a "%" is not followed by two hexadecimal digits.
[[nodiscard]] inline std::optional<std::string> percent_decoded(std::string_view text) {
    const auto digit = [&](std::size_t at) {
        const char c = at < text.size() ? text[at] : '\0';
        const char lower = static_cast<char>(c | 0x20);
        return c >= '0' && c <= '9'           ? c - '0'
               : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                              : -1;
    };
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            bytes += text[i];
            continue;
        }
        if (digit(i + 1) < 0 || digit(i + 2) < 0) {
            return std::nullopt;
        }
        bytes += static_cast<char>(16 * digit(i + 1) + digit(i + 2));
        i += 2;
    }
    return bytes;
}

/// The decoded value of a parameter; nothing when it is not there or cannot be decoded.
[[nodiscard]] inline std::optional<std::string> query_value(std::string_view query,
                                                            std::string_view name) {
    while (!query.empty()) {
        const std::string_view pair = query.substr(0, query.find('&'));
        const auto equals = pair.find('=');
        if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
            return percent_decoded(pair.substr(equals + 1));
        }
        query.remove_prefix(pair.size() + (pair.size() < query.size() ? 1 : 0));
    }
    return std::nullopt;
}

} // namespace orizuru::detail::web
