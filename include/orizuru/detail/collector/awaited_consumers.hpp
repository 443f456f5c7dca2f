// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Consumers without a heartbeat whose absence does not count yet (write_series.hpp). Each question
// whether it does is a write itself, and so keeps the series going.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/timeout.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

class AwaitedConsumers {
  public:
    using Milliseconds = std::chrono::milliseconds;

    /// Its absence counts in `wait` at the earliest; the series ends after `gap` without a write.
    void add(std::string id, Milliseconds wait, Milliseconds gap) {
        m_ids.push_back(std::move(id));
        m_next = std::min(m_next, deadline_in(std::max(Milliseconds(1), std::min(wait, gap / 2))));
    }
    /// Returns all, and forgets them.
    [[nodiscard]] std::vector<std::string> take() noexcept {
        m_next = TimePoint::max();
        return std::exchange(m_ids, {});
    }

    /// When to ask again; the end of time if there are none.
    [[nodiscard]] TimePoint next() const noexcept { return m_next; }

  private:
    std::vector<std::string> m_ids;
    TimePoint m_next = TimePoint::max();
};

} // namespace orizuru::detail
