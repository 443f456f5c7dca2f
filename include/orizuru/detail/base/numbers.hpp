// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Whole numbers as text, without an allocation, and text as whole numbers. std::from_chars is
// compiled anew in every program, for all bases.

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace orizuru::detail {

/// A static_cast of which -Wuseless-cast says nothing where both types are the same: whether
/// std::size_t is std::uint64_t depends on the system.
template <std::integral To>
[[nodiscard]] constexpr To narrow(std::integral auto number) noexcept {
    return static_cast<To>(number);
}

class Digits {
  public:
    explicit Digits(std::unsigned_integral auto number) noexcept { write(number); }
    explicit Digits(std::signed_integral auto number) noexcept {
        const auto size = static_cast<std::uint64_t>(number);
        if (number < 0) {
            m_text[m_size++] = '-';
        }
        write(number < 0 ? 0 - size : size);
    }

    operator std::string_view() const noexcept { return {m_text, m_size}; }

  private:
    [[gnu::noinline]] void write(std::uint64_t number) noexcept {
        const auto end = std::to_chars(m_text + m_size, m_text + sizeof m_text, number).ptr;
        m_size = static_cast<std::size_t>(end - m_text);
    }

    char m_text[24];
    std::size_t m_size = 0;
};

/// The number that the whole text is; nothing when it has anything but digits, or too many.
[[nodiscard]] inline std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t number = 0;
    for (const char c : text) {
        const auto digit = static_cast<std::uint64_t>(c - '0');
        if (c < '0' || digit > 9 || number > (most - digit) / 10) {
            return std::nullopt;
        }
        number = number * 10 + digit;
    }
    return text.empty() ? std::nullopt : std::optional(number);
}

} // namespace orizuru::detail
