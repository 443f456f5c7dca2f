// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Knows until when a consumer's lease lasts. It counts from the request that Redis confirmed, so
// never too late.

#include <orizuru/detail/base/clock.hpp>

#include <algorithm>
#include <chrono>

namespace orizuru::detail {

class Lease {
  public:
    explicit Lease(std::chrono::milliseconds length) : m_length(length) {}

    /// A request that registers the consumer is composed.
    void ask() noexcept { m_asked = LeaseClock::now(); }
    /// Redis has run that request.
    void confirm() noexcept { confirm(m_asked); }
    /// Redis has run a request that renews the lease, composed at `asked`.
    void confirm(LeaseClock::time_point asked) noexcept { m_from = std::max(m_from, asked); }
    [[nodiscard]] LeaseClock::time_point end() const noexcept { return m_from + m_length; }

  private:
    std::chrono::milliseconds m_length;
    LeaseClock::time_point m_from{};
    LeaseClock::time_point m_asked{};
};

} // namespace orizuru::detail
