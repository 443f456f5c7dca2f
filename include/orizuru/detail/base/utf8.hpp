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
[[nodiscard]] inline std::size_t utf8_size(std::string_view text) noexcept {
    const auto lies_in = [&](std::size_t at, unsigned least, unsigned most) {
        return at < text.size() && static_cast<unsigned char>(text[at]) >= least &&
               static_cast<unsigned char>(text[at]) <= most;
    };
    const auto continue_to = [&](std::size_t size) {
        for (std::size_t at = 2; at < size; ++at) {
            if (!lies_in(at, 0x80, 0xbf)) {
                return std::size_t{0};
            }
        }
        return size;
    };
    if (lies_in(0, 0x00, 0x7f)) {
        return 1;
    }
    if (lies_in(0, 0xc2, 0xdf) && lies_in(1, 0x80, 0xbf)) {
        return 2;
    }
    // No overlong form, no surrogate, nothing beyond U+10FFFF.
    if ((lies_in(0, 0xe0, 0xe0) && lies_in(1, 0xa0, 0xbf)) ||
        (lies_in(0, 0xed, 0xed) && lies_in(1, 0x80, 0x9f)) ||
        (lies_in(0, 0xe1, 0xef) && !lies_in(0, 0xed, 0xed) && lies_in(1, 0x80, 0xbf))) {
        return continue_to(3);
    }
    if ((lies_in(0, 0xf0, 0xf0) && lies_in(1, 0x90, 0xbf)) ||
        (lies_in(0, 0xf1, 0xf3) && lies_in(1, 0x80, 0xbf)) ||
        (lies_in(0, 0xf4, 0xf4) && lies_in(1, 0x80, 0x8f))) {
        return continue_to(4);
    }
    return 0;
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
