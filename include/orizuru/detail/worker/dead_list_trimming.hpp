// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps a queue's dead list to its limits: when a worker has buried something, and now and then, as
// entries grow old and others bury too.

#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/worker_queue.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/jobs/dead_list.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

namespace orizuru::detail {

/// For one thread at a time; lives no longer than the queue.
class DeadListTrimming {
  public:
    explicit DeadListTrimming(WorkerQueue& queue) : m_queue(queue) {}

    [[nodiscard]] const WorkerQueue& queue() const noexcept { return m_queue; }
    /// Trims, if that is due. Throws as DeadList does: then it is due again `pause` later.
    void trim(const Endpoint& endpoint, std::chrono::milliseconds pause);

  private:
    // Ages are in days: nobody notices.
    static constexpr std::chrono::milliseconds interval{60'000};

    WorkerQueue& m_queue;
    std::optional<DeadList> m_list;
    TimePoint m_due{};
    TimePoint m_not_before{};
};

inline void DeadListTrimming::trim(const Endpoint& endpoint, std::chrono::milliseconds pause) {
    if (m_queue.has_dead_grown()) {
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
