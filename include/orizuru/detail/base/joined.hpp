// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Joins pieces of text: at run time in one function, since the compiler would expand each chain of
// operator+ anew, and literals while the program is compiled.

#include <array>
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

/// A text of a known size. It allocates nothing, so that one can be part of the program.
template <std::size_t Size>
struct FixedText {
    std::array<char, Size> characters;

    [[nodiscard]] constexpr operator std::string_view() const noexcept { // NOLINT: it is a text
        return {characters.data(), Size};
    }
};

template <std::size_t... Sizes>
[[nodiscard]] consteval auto joined_text(const char (&... literals)[Sizes]) {
    FixedText<(... + (Sizes - 1))> text{};
    char* end = text.characters.data();
    const auto append = [&end](const char* literal, std::size_t size) {
        // std::copy_n takes the compiler several times as long for each character.
        for (std::size_t i = 0; i < size; ++i) {
            *end++ = literal[i];
        }
    };
    (append(literals, Sizes - 1), ...);
    return text;
}

} // namespace orizuru::detail
