// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Text as a terminal may show it: anyone who can push chooses names, ids, reasons and payloads.

#include <orizuru/detail/base/utf8.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace orizuru::detail::cli {

struct CharacterRange {
    char32_t first;
    char32_t last;
};

/// Characters that a terminal obeys (C0 and C1 controls) or does not show, that reverse the text
/// beside them, or that each font shows in a way of its own (private use).
/// Source: Unicode's PropList.txt, Bidi_Control, and DerivedCoreProperties.txt,
/// Default_Ignorable_Code_Point.
inline constexpr std::array<CharacterRange, 21> hidden_characters{
    {{0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},
     {0x61c, 0x61c},     {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
     {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
     {0xe000, 0xf8ff},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
     {0xfff0, 0xfffb},   {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
     {0xf0000, 0x10ffff}}};

/// Those of the common scripts that stand above the character before them.
inline constexpr std::array<CharacterRange, 11> combining_characters{{{0x300, 0x36f},
                                                                      {0x483, 0x489},
                                                                      {0x591, 0x5bd},
                                                                      {0x610, 0x61a},
                                                                      {0x64b, 0x65f},
                                                                      {0x6d6, 0x6dc},
                                                                      {0x1ab0, 0x1aff},
                                                                      {0x1dc0, 0x1dff},
                                                                      {0x20d0, 0x20ff},
                                                                      {0x3099, 0x309a},
                                                                      {0xfe20, 0xfe2f}}};

/// Those that take two columns. Source: Unicode's EastAsianWidth.txt, W and F, in large ranges.
inline constexpr std::array<CharacterRange, 12> wide_characters{{{0x1100, 0x115e},
                                                                 {0x2e80, 0x303e},
                                                                 {0x3041, 0x3098},
                                                                 {0x309b, 0x4dbf},
                                                                 {0x4e00, 0xa4cf},
                                                                 {0xa960, 0xa97c},
                                                                 {0xac00, 0xd7a3},
                                                                 {0xf900, 0xfaff},
                                                                 {0xfe30, 0xfe6f},
                                                                 {0xff01, 0xff60},
                                                                 {0x1f300, 0x1f9ff},
                                                                 {0x20000, 0x3fffd}}};

template <std::size_t Size>
[[nodiscard]] constexpr bool is_among(char32_t character,
                                      const std::array<CharacterRange, Size>& ranges) noexcept {
    return std::ranges::any_of(ranges, [=](CharacterRange range) {
        return range.first <= character && character <= range.last;
    });
}

/// The character that these bytes of UTF-8 are.
[[nodiscard]] inline char32_t to_character(std::string_view bytes) noexcept {
    const auto first = static_cast<unsigned char>(bytes.front());
    char32_t character = bytes.size() == 1 ? first : first & (0xffU >> (bytes.size() + 1));
    for (const char byte : bytes.substr(1)) {
        character = character << 6U | (static_cast<unsigned char>(byte) & 0x3fU);
    }
    return character;
}

/// Returns the columns of a terminal that a character takes; it must not be hidden.
[[nodiscard]] inline std::size_t columns_of(char32_t character) noexcept {
    return is_among(character, combining_characters) ? 0
           : is_among(character, wide_characters)    ? 2
                                                     : 1;
}

/// Does so for UTF-8 without hidden characters.
[[nodiscard]] inline std::size_t visible_columns(std::string_view text) noexcept {
    std::size_t columns = 0;
    while (!text.empty()) {
        const std::size_t size = std::max<std::size_t>(utf8_size(text), 1);
        columns += columns_of(to_character(text.substr(0, size)));
        text.remove_prefix(size);
    }
    return columns;
}

/// Its beginning and an ellipsis, in so many columns; for a text that takes more.
[[nodiscard]] inline std::string cut_visible(std::string_view text, std::size_t most_columns) {
    std::size_t end = 0;
    std::size_t columns = 0;
    while (end < text.size()) {
        const std::string_view rest = text.substr(end);
        const std::size_t size = std::max<std::size_t>(utf8_size(rest), 1);
        columns += columns_of(to_character(rest.substr(0, size)));
        if (columns + 1 > most_columns) {
            break;
        }
        end += size;
    }
    return most_columns == 0 ? std::string() : std::string(text.substr(0, end)) + "…";
}

/// UTF-8 in which each hidden character is an escape: \n, \r, \t, \u{202e}; each byte that belongs
/// to no character is \x9b, and a backslash is two. So different texts look different.
class VisibleText {
  public:
    VisibleText(const char* text) : VisibleText(std::string_view(text)) {}
    VisibleText(const std::string& text) : VisibleText(std::string_view(text)) {}
    VisibleText(std::string_view text, std::size_t most_columns = std::string_view::npos) {
        for (std::size_t taken = 0; !text.empty(); ++taken) {
            const std::size_t size = std::max<std::size_t>(utf8_size(text), 1);
            const std::size_t before = m_text.size();
            const std::size_t columns = append(text.substr(0, size));
            // Characters without a width of their own may be many.
            if (std::max(taken, m_columns + columns) > most_columns) {
                m_text.resize(before);
                m_text += "…";
                ++m_columns;
                m_cut = true;
                return;
            }
            m_columns += columns;
            text.remove_prefix(size);
        }
    }

    [[nodiscard]] const std::string& text() const noexcept { return m_text; }
    /// Returns how many of a terminal's columns it takes.
    [[nodiscard]] std::size_t columns() const noexcept { return m_columns; }
    /// True if it would have taken more than the most columns.
    [[nodiscard]] bool cut() const noexcept { return m_cut; }

    /// Leaves at most so many columns, the last one an ellipsis.
    void cut_to(std::size_t most_columns) {
        if (m_columns > most_columns) {
            m_text = cut_visible(m_text, most_columns);
            m_columns = visible_columns(m_text);
            m_cut = true;
        }
    }

    VisibleText& operator+=(const VisibleText& more) {
        m_text += more.m_text;
        m_columns += more.m_columns;
        return *this;
    }

    friend std::ostream& operator<<(std::ostream& out, const VisibleText& text) {
        return out << text.m_text;
    }

  private:
    /// One character, or a byte that belongs to none. Returns its columns.
    std::size_t append(std::string_view bytes) {
        if (utf8_size(bytes) == 0) {
            return append_escape("\\x", static_cast<unsigned char>(bytes.front()), "");
        }
        const char32_t character = to_character(bytes);
        if (const auto at = std::string_view("\n\r\t\\").find(bytes);
            at != std::string_view::npos) {
            m_text += '\\';
            m_text += "nrt\\"[at];
            return 2;
        }
        if (is_among(character, hidden_characters)) {
            return append_escape("\\u{", character, "}");
        }
        m_text += bytes;
        return columns_of(character);
    }

    std::size_t append_escape(std::string_view before, char32_t number, std::string_view after) {
        std::array<char, 8> digits{};
        const char* const end =
            std::to_chars(digits.data(), digits.data() + digits.size(), std::uint32_t{number}, 16)
                .ptr;
        const std::string_view hex(digits.data(), static_cast<std::size_t>(end - digits.data()));
        m_text += before;
        m_text += hex;
        m_text += after;
        return before.size() + hex.size() + after.size();
    }

    std::string m_text;
    std::size_t m_columns = 0;
    bool m_cut = false;
};

} // namespace orizuru::detail::cli
