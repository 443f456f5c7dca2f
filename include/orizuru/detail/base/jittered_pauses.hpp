// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Pauses between attempts: exponential from 50 ms to 5 s with full jitter (drawn evenly between
// zero and the bound), so that clients do not all arrive at once when Redis comes back.

#include <orizuru/detail/base/random.hpp>

#include <algorithm>
#include <chrono>

namespace orizuru::detail {

class JitteredPauses {
  public:
    [[nodiscard]] std::chrono::milliseconds next() noexcept {
        const auto bound = std::min(longest, shortest * (1 << std::min(m_attempts, 10)));
        ++m_attempts;
        return std::chrono::milliseconds(1 + m_random.up_to(bound.count() - 1));
    }

    void reset() noexcept { m_attempts = 0; }

  private:
    static constexpr std::chrono::milliseconds shortest{50};
    static constexpr std::chrono::milliseconds longest{5000};

    int m_attempts = 0;
    Random m_random;
};

} // namespace orizuru::detail
