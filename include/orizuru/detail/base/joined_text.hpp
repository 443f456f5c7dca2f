// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Joins literals while the program is compiled.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace orizuru::detail {

/// A text that is part of the program.
template <std::size_t Size>
struct JoinedText {
    std::array<char, Size> characters;

    [[nodiscard]] constexpr operator std::string_view() const noexcept { // NOLINT: it is a text
        return {characters.data(), Size};
    }
};

template <std::size_t... Sizes>
[[nodiscard]] consteval auto joined_text(const char (&... literals)[Sizes]) {
    JoinedText<(... + (Sizes - 1))> text{};
    char* end = text.characters.data();
    ((end = std::copy_n(literals, Sizes - 1, end)), ...);
    return text;
}

} // namespace orizuru::detail
