// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// For how long Redis has answered a collector. An outage that is shorter than the longest pause in
// a series of writes does not end the series, but a collector that was refused knows of it.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace orizuru::detail {

/// Begins with the connection that the collector has when this is made.
class AnswerStreak {
  public:
    /// Redis has refused a request: the streak ends.
    void refused() noexcept { m_since.reset(); }
    /// Redis has taken a write: a streak begins if none goes on.
    void taken() noexcept {
        if (!m_since) {
            m_since = Clock::now();
        }
    }
    /// How long it has lasted (ms). A lost connection ends it, too.
    [[nodiscard]] std::int64_t length(const Connection& connection) const {
        return m_since
                   ? milliseconds_since(std::max(*m_since, TimePoint(connection.connected_at())))
                   : 0;
    }

  private:
    std::optional<TimePoint> m_since = Clock::now();
};

} // namespace orizuru::detail
