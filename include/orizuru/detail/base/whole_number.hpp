// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads a whole number from a text. std::from_chars is compiled anew in every program, for all bases.

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace orizuru::detail {

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
