// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace orizuru::test {

/// Bytes as two hexadecimal digits each.
inline std::string hex(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += "0123456789abcdef"[value >> 4];
        text += "0123456789abcdef"[value & 15];
    }
    return text;
}

/// True for exactly this many hexadecimal digits, as hex() writes them.
inline bool is_hex(std::string_view text, std::size_t digits) {
    return text.size() == digits &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

} // namespace orizuru::test
