// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tells the characters of UTF-8.

#include <cstddef>
#include <string_view>

namespace orizuru::detail {

/// The size in bytes of the UTF-8 character that begins a text; 0 if none does.
/// Source: The Unicode Standard, table 3-7, "Well-Formed UTF-8 Byte Sequences".
[[nodiscard]] inline std::size_t utf8_size(std::string_view text) noexcept {
    const auto byte = [&](std::size_t at) {
        return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    };
    const unsigned first = byte(0);
    if (first < 0x80) {
        return text.empty() ? 0 : 1;
    }
    const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    for (std::size_t at = 1; at < size; ++at) {
        if ((byte(at) & 0xc0U) != 0x80) {
            return 0;
        }
    }
    // No overlong form, no surrogate, nothing beyond U+10FFFF.
    const bool refused = first < 0xc2 || first > 0xf4 || (first == 0xe0 && byte(1) < 0xa0) ||
                         (first == 0xed && byte(1) > 0x9f) || (first == 0xf0 && byte(1) < 0x90) ||
                         (first == 0xf4 && byte(1) > 0x8f);
    return refused ? 0 : size;
}

} // namespace orizuru::detail
