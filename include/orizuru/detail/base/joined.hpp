// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Joins pieces of text in one function; the compiler would expand each chain of operator+ anew.

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace orizuru::detail {

[[nodiscard]] inline std::string joined(std::initializer_list<std::string_view> pieces) {
    std::size_t size = 0;
    for (const std::string_view piece : pieces) {
        size += piece.size();
    }
    std::string text;
    text.reserve(size);
    for (const std::string_view piece : pieces) {
        text += piece;
    }
    return text;
}

} // namespace orizuru::detail
