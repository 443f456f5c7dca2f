// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Random bits that no other process has, and random waiting times. std::random_device would do, but
// it reads the processor's own source, which takes microseconds for each word.

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>

namespace orizuru::detail {

/// Throws std::system_error on a system without entropy, as do the functions below.
template <std::size_t Bytes>
[[nodiscard]] std::array<unsigned char, Bytes> random_bytes() {
    std::array<unsigned char, Bytes> bytes;
    if (::getentropy(bytes.data(), bytes.size()) != 0) {
        throw std::system_error(errno, std::generic_category(), "getentropy");
    }
    return bytes;
}

[[nodiscard]] [[gnu::cold]] inline std::uint64_t entropy() {
    return std::bit_cast<std::uint64_t>(random_bytes<8>());
}

/// `Digits` random hexadecimal digits, an even number.
template <std::size_t Digits>
[[nodiscard]] std::string random_hex() {
    std::string text;
    text.reserve(Digits);
    for (const unsigned char byte : random_bytes<Digits / 2>()) {
        text += "0123456789abcdef"[byte >> 4U];
        text += "0123456789abcdef"[byte & 15U];
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
