// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Writes commands as Redis reads them (RESP arrays of bulk strings) to the end of the output, so
// that each argument is copied once.

#include <orizuru/detail/base/numbers.hpp>

#include <concepts>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Opens a command of `count` arguments, its name included; exactly as many must follow.
inline void begin_command(std::string& out, std::size_t count) {
    out += '*';
    out += Digits(count);
    out += "\r\n";
}

inline void append_argument(std::string& out, std::string_view text) {
    out += '$';
    out += Digits(text.size());
    out += "\r\n";
    out += text;
    out += "\r\n";
}

inline void append_argument(std::string& out, std::integral auto number) {
    append_argument(out, Digits(number));
}

/// Cuts a buffer back for reuse, and frees memory that only an unusually large message needed.
inline void cut_back(std::string& buffer, std::size_t size) noexcept {
    constexpr std::size_t largest_kept = std::size_t{2} << 20;
    buffer.resize(size);
    if (buffer.capacity() > largest_kept) {
        buffer.shrink_to_fit();
    }
}

/// A range of texts: each of them is an argument.
template <class Range>
concept TextRange = std::ranges::sized_range<const Range&> &&
    std::convertible_to<std::ranges::range_reference_t<const Range&>, std::string_view> &&
    !std::convertible_to<const Range&, std::string_view>;

void append_argument(std::string& out, const TextRange auto& texts) {
    for (auto&& text : texts) { // which may be a temporary
        append_argument(out, std::string_view(text));
    }
}

template <class Argument>
[[nodiscard]] std::size_t count_arguments(const Argument& argument) {
    if constexpr (TextRange<Argument>) {
        return std::ranges::size(argument);
    }
    return 1;
}

template <class... Arguments>
void append_command(std::string& out, const Arguments&... arguments) {
    begin_command(out, (count_arguments(arguments) + ... + 0));
    (append_argument(out, arguments), ...);
}

} // namespace orizuru::detail
