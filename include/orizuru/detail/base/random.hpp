// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Random numbers for waiting times; they differ from process to process. <random> would add 11,000
// lines to each program.

#include <orizuru/detail/base/entropy.hpp>

#include <cstdint>

namespace orizuru::detail {

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
