// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Random bits that nobody else has. std::random_device would do, but reads the processor's own
// source, which takes microseconds for each word.

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace orizuru::detail {

/// 64 bits from the system. Throws std::system_error on a system that has none.
[[nodiscard]] inline std::uint64_t entropy() {
    std::uint64_t bits = 0;
    if (::getentropy(&bits, sizeof bits) != 0) {
        throw std::system_error(errno, std::generic_category(), "getentropy");
    }
    return bits;
}

} // namespace orizuru::detail
