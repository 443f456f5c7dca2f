// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads a whole number from a text. std::from_chars would be compiled anew for each type of number.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace orizuru::detail {

/// The number that the whole text is; nothing when it has anything but digits, or too many.
[[nodiscard]] inline std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

} // namespace orizuru::detail
