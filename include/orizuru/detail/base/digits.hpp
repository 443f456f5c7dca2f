// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A number as text, without an allocation.

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orizuru::detail {

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

} // namespace orizuru::detail
