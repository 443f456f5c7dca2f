// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps a queue's dead list within its limits. Trims it after a worker has buried a message, and
// once in a while, because entries grow old and others bury messages, too.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/jobs/dead_list.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

namespace orizuru::detail {

/// For one thread at a time. The queue outlives this.
class DeadListTrimming {
  public:
    explicit DeadListTrimming(ServedQueue& queue) : m_queue(queue) {}

    [[nodiscard]] const ServedQueue& queue() const noexcept { return m_queue; }
    /// Trims the dead list when that is due. Throws as DeadList does; it is due again `pause`
    /// later.
    void trim(const Endpoint& endpoint, std::chrono::milliseconds pause);

  private:
    // Short enough for limits of age, which are days.
    static constexpr std::chrono::milliseconds interval{60'000};

    ServedQueue& m_queue;
    std::optional<DeadList> m_list;
    TimePoint m_due{};
    TimePoint m_not_before{};
};

inline void DeadListTrimming::trim(const Endpoint& endpoint, std::chrono::milliseconds pause) {
    if (m_queue.take_dead_grew()) {
        m_due = TimePoint();
    }
    if (Clock::now() < std::max(m_due, m_not_before)) {
        return;
    }
    m_not_before = deadline_in(pause);
    if (!m_list) {
        m_list.emplace(endpoint, m_queue.queue());
    }
    m_list->trim(m_queue.options().dead);
    m_not_before = TimePoint();
    m_due = deadline_in(interval);
}

} // namespace orizuru::detail
