// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Random bits that no other process has, and random waiting times. std::random_device would do, but
// it reads the processor's own source, which takes microseconds for each word.

#include <orizuru/detail/base/system.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace orizuru::detail {

/// Throws std::system_error on a system without entropy, as do the functions below.
[[gnu::cold]] inline void fill_at_random(void* bytes, std::size_t size) {
    if (::getentropy(bytes, size) != 0) {
        throw_errno("getentropy");
    }
}

[[nodiscard]] [[gnu::cold]] inline std::uint64_t entropy() {
    std::uint64_t bits = 0;
    fill_at_random(&bits, sizeof bits);
    return bits;
}

/// At most 256 hexadecimal digits.
[[nodiscard]] [[gnu::cold]] inline std::string random_hex(std::size_t digits) {
    std::string text(digits, '\0');
    fill_at_random(text.data(), digits);
    for (char& c : text) {
        c = "0123456789abcdef"[c & 15];
    }
    return text;
}

class Random {
  public:
    /// A number from 0 to `largest`, evenly distributed as far as a waiting time needs it.
    [[nodiscard]] std::int64_t up_to(std::int64_t largest) noexcept {
        m_state = m_state * 6364136223846793005 + 1442695040888963407; // Knuth's, of MMIX
        const std::uint64_t drawn = m_state >> 16U; // the low bits repeat soonest
        return static_cast<std::int64_t>(drawn % (static_cast<std::uint64_t>(largest) + 1));
    }

  private:
    std::uint64_t m_state = entropy();
};

} // namespace orizuru::detail
