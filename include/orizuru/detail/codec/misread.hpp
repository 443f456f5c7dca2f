// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Says why a payload cannot be read as a type. The dead list keeps the reason for people who know
// neither the payload nor the type.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/utf8.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// The name of T as the compiler writes it.
template <class T>
[[nodiscard]] constexpr std::string_view type_name() noexcept {
    const std::string_view text = __PRETTY_FUNCTION__;
    const std::size_t begin = text.find("T = ") + 4;
    // g++ goes on with what other names stand for, clang++ does not.
    return text.substr(begin, std::min(text.find(';', begin), text.rfind(']')) - begin);
}

/// UTF-8 without control characters but tabs and ends of lines.
[[nodiscard]] [[gnu::cold]] inline bool is_plain_text(std::string_view bytes) noexcept {
    while (!bytes.empty()) {
        const std::size_t size = utf8_size(bytes);
        const char first = bytes.front();
        const bool control = static_cast<unsigned char>(first) < ' ' || first == '\x7f';
        if (size == 0 || (control && std::string_view("\t\r\n").find(first) == std::string::npos)) {
            return false;
        }
        bytes.remove_prefix(size);
    }
    return true;
}

/// Returns what follows the reason when someone seems to have pushed text as it is.
[[nodiscard]] [[gnu::cold]] inline std::string_view hint_for(std::string_view payload) noexcept {
    return !payload.empty() && is_plain_text(payload) ? "; is this plain text? See orizuru::Raw"
                                                      : "";
}

/// Throws std::invalid_argument: the payload is no msgpack.
[[noreturn]] [[gnu::cold]] inline void throw_unreadable(std::string_view why,
                                                        std::string_view payload) {
    throw std::invalid_argument(joined({why, hint_for(payload)}));
}

/// The kind of msgpack value that begins with this byte.
[[nodiscard]] [[gnu::cold]] constexpr std::string_view kind_of(std::uint8_t first) noexcept {
    if (first < 0x80 || first >= 0xe0 || (first >= 0xca && first <= 0xd3)) {
        return "a number";
    }
    if (first < 0x90 || first == 0xde || first == 0xdf) {
        return "a map";
    }
    if (first < 0xa0 || first == 0xdc || first == 0xdd) {
        return "an array";
    }
    if (first < 0xc0 || (first >= 0xd9 && first <= 0xdb)) {
        return "a str";
    }
    if (first == 0xc0) {
        return "nil";
    }
    if (first == 0xc2 || first == 0xc3) {
        return "a boolean";
    }
    return first >= 0xc4 && first <= 0xc6 ? "a bin" : "an ext";
}

/// Throws std::invalid_argument. `wanted` is the kind that the type is read from, if that is known.
[[noreturn]] [[gnu::cold]] inline void throw_misread(std::string_view type, std::string_view wanted,
                                                     std::string_view payload) {
    const auto first = static_cast<std::uint8_t>(payload.front());
    const std::string_view found = kind_of(first);
    constexpr std::string_view digits = "0123456789abcdef";
    const std::array hexadecimal{digits[first >> 4U], digits[first & 0xfU]};
    const std::string byte =
        joined({" (first byte 0x", {hexadecimal.data(), hexadecimal.size()}, ")"});
    if (wanted == "a number" && wanted == found) {
        throw std::invalid_argument(
            joined({"the payload is a number that ", type, " cannot hold"}));
    }
    if (!wanted.empty() && wanted != found) {
        throw std::invalid_argument(joined(
            {type, " is read from ", wanted, ", the payload is ", found, byte, hint_for(payload)}));
    }
    if (found == "an array" || found == "a map") {
        throw std::invalid_argument(joined(
            {type, " cannot be read: a value in the payload is not of the kind that it needs"}));
    }
    throw std::invalid_argument(
        joined({type, " cannot be read from ", found, byte, hint_for(payload)}));
}

} // namespace orizuru::detail
