// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The decimal numbers of Redis as numbers, also with a standard library (libc++) that has no
// std::from_chars for them.

#include <charconv>
#include <limits>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

namespace orizuru::detail {

/// Reads the whole text as Redis writes a score: 17 digits, an exponent, inf or -inf. Returns
/// nothing for any other text.
[[nodiscard]] inline std::optional<double> decimal_number(const std::string& text) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (text == "inf" || text == "-inf") {
        return text == "inf" ? infinity : -infinity;
    }
    // Redis writes nothing else; std::from_chars and a stream accept more, such as NaN or a space.
    if (text.empty() || text.front() == '+' ||
        text.find_first_not_of("-.0123456789e+") != std::string::npos) {
        return std::nullopt;
    }
    double number = 0;
#if defined(__cpp_lib_to_chars) && !defined(ORIZURU_POSIX)
    const char* const end = text.data() + text.size();
    const auto found = std::from_chars(text.data(), end, number);
    return found.ec == std::errc() && found.ptr == end ? std::optional(number) : std::nullopt;
#else
    std::istringstream stream(text);
    stream.imbue(std::locale::classic()); // the process' own may have a decimal comma
    return stream >> number && stream.peek() == std::istringstream::traits_type::eof()
               ? std::optional(number)
               : std::nullopt;
#endif
}

} // namespace orizuru::detail
