// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Waiting times between attempts: exponential from 50 ms to 5 s with full jitter (a time drawn
// evenly between nothing and the bound), so that the clients of a Redis that comes back do not all
// arrive at once.

#include <orizuru/detail/base/entropy.hpp>

#include <algorithm>
#include <chrono>
#include <random>

namespace orizuru::detail {

class JitteredPauses {
  public:
    [[nodiscard]] std::chrono::milliseconds next() noexcept {
        const auto bound = std::min(longest, shortest * (1 << std::min(m_attempts, 10)));
        ++m_attempts;
        return std::chrono::milliseconds(
            std::uniform_int_distribution<std::chrono::milliseconds::rep>(1,
                                                                          bound.count())(m_random));
    }

    void reset() noexcept { m_attempts = 0; }

  private:
    static constexpr std::chrono::milliseconds shortest{50};
    static constexpr std::chrono::milliseconds longest{5000};

    int m_attempts = 0;
    std::minstd_rand m_random{static_cast<std::minstd_rand::result_type>(entropy())};
};

} // namespace orizuru::detail
