// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What a target makes of the fuzzer's bytes.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace orizuru::test {

/// Values taken from the front of the bytes; zeros when none are left.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size)
        : m_rest(size == 0 ? "" : reinterpret_cast<const char*>(data), size) {}

    [[nodiscard]] bool empty() const noexcept { return m_rest.empty(); }
    [[nodiscard]] std::string_view rest() const noexcept { return m_rest; }

    [[nodiscard]] std::string_view take(std::size_t most) {
        const std::string_view taken = m_rest.substr(0, most);
        m_rest.remove_prefix(taken.size());
        return taken;
    }

    template <std::integral Number>
    [[nodiscard]] Number number() {
        const std::string_view bytes = take(sizeof(Number));
        Number value{};
        std::memcpy(&value, bytes.data(), bytes.size());
        return value;
    }

    /// `bound` from 1 to 256.
    [[nodiscard]] std::size_t below(std::size_t bound) { return number<std::uint8_t>() % bound; }

    /// Any bytes, at most 255.
    [[nodiscard]] std::string text() { return std::string(take(number<std::uint8_t>())); }

  private:
    std::string_view m_rest;
};

/// Ends the process unless what a target promises holds; the fuzzer keeps the input.
inline void check(bool holds, std::string_view promise) {
    if (!holds) {
        std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(promise.size()),
                     promise.data());
        std::abort();
    }
}

} // namespace orizuru::test
