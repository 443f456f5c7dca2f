// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The deadline of a call that may wait. It reads the clock when the deadline is first needed: a
// call that need not wait costs less than reading it.

#include <orizuru/detail/base/clock.hpp>

#include <chrono>
#include <optional>

namespace orizuru::detail {

class Timeout {
  public:
    explicit Timeout(std::chrono::milliseconds time) noexcept : m_time(time) {}
    [[nodiscard]] static Timeout never() noexcept {
        return Timeout(std::chrono::milliseconds::max());
    }

    [[nodiscard]] TimePoint deadline() {
        if (!m_deadline) {
            m_deadline = deadline_in(m_time);
        }
        return *m_deadline;
    }

  private:
    std::chrono::milliseconds m_time;
    std::optional<TimePoint> m_deadline;
};

} // namespace orizuru::detail
