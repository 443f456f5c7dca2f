// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Turns any text, such as an exception's message, into UTF-8 of a bounded size.

#include <cstddef>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// The first `most` bytes of a text, less a UTF-8 character that this would cut in two.
[[nodiscard]] inline std::string_view cut_text(std::string_view text, std::size_t most) noexcept {
    if (text.size() <= most) {
        return text;
    }
    const auto continues = [&](std::size_t at) {
        return (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
    };
    std::size_t size = most;
    while (size > 0 && most - size < 3 && continues(size)) {
        --size;
    }
    return text.substr(0, continues(size) ? most : size);
}

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

/// The text with U+FFFD for each byte that belongs to no UTF-8 character.
[[nodiscard]] inline std::string to_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t size = utf8_size(text);
        out += size > 0 ? text.substr(0, size) : std::string_view("\xef\xbf\xbd");
        text.remove_prefix(size > 0 ? size : 1);
    }
    return out;
}

} // namespace orizuru::detail
