// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The name of one incarnation of a consumer, and the header of its list.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/random.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

struct Identity {
    std::string id; ///< public: label:host:pid:random
    /// Private, so that no producer can push a text that reads as a header. A consumer's ends with
    /// its lease in ms, and how many messages it handles at once if it knows that: "…l30000n10".
    std::string nonce;

    [[nodiscard]] std::string header_prefix() const { return joined({"orz:", nonce, ":"}); }
    [[nodiscard]] std::string header(std::uint64_t version) const {
        return joined({"orz:", nonce, ":", Digits(version)});
    }
    /// Writes the header into `text` and reuses its memory.
    void write_header(std::string& text, std::uint64_t version) const {
        text.assign("orz:").append(nonce).append(":").append(Digits(version));
    }

    /// The version in a header of this identity; nothing for any other text.
    [[nodiscard]] std::optional<std::uint64_t> version(std::string_view header) const {
        const std::string prefix = header_prefix();
        if (!header.starts_with(prefix)) {
            return std::nullopt;
        }
        return whole_number(header.substr(prefix.size()));
    }
};

/// Makes a unique id and nonce for one incarnation.
[[nodiscard]] [[gnu::cold]] inline Identity make_identity(std::string_view label) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) {
        host[0] = '\0';
    }
    std::string name(host.data());
    std::ranges::replace_if(
        name, [](char c) { return c <= ' ' || c > '~' || c == ':' || c == '{' || c == '}'; }, '_');
    return {joined({label, ":", name.empty() ? "localhost" : name, ":", Digits(::getpid()), ":",
                    random_hex(16)}),
            random_hex(16)};
}

/// True if a text has the shape of an id: four words, the last one of 16 hexadecimal digits.
[[nodiscard]] inline bool is_id(std::string_view text) noexcept {
    constexpr std::size_t digits = 16;
    const auto last = text.rfind(':');
    return std::count(text.begin(), text.end(), ':') == 3 && text.size() - last - 1 == digits &&
           text.find_first_not_of("0123456789abcdef", last + 1) == std::string_view::npos &&
           text.find_first_of("{}") == std::string_view::npos;
}

/// Throws std::invalid_argument for a label that would not stay readable in keys and logs.
[[gnu::cold]] inline void check_label(std::string_view label) {
    constexpr std::size_t longest = 100;
    constexpr std::string_view allowed =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    if (label.empty() || label.size() > longest ||
        label.find_first_not_of(allowed) != std::string_view::npos) {
        throw std::invalid_argument(
            joined({"the consumer name '", label.substr(0, longest),
                    "' must be 1 to 100 of the characters A-Z a-z 0-9 _ . -"}));
    }
}

} // namespace orizuru::detail
