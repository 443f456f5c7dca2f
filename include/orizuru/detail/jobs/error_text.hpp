// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Turns any text, such as an exception's message, into UTF-8 of a bounded size.

#include <orizuru/detail/base/utf8.hpp>

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
