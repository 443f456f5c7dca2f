// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps a queue's dead list within its limits. Trims it after a worker has buried a message, and
// once in a while, because entries grow old and others bury messages, too.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/jobs/dead_list.hpp>

#include <chrono>
#include <memory>
#include <utility>

namespace orizuru::detail {

/// For one thread at a time. The queue outlives this.
class DeadListTrimming {
  public:
    DeadListTrimming(ServedQueue& queue, std::shared_ptr<Connection> connection)
        : m_queue(queue), m_list(std::move(connection), queue.keys().source()) {}

    /// Trims the dead list when that is due. Throws as DeadList does; it stays due then.
    void trim() {
        if (m_queue.take_dead_grew()) {
            m_due = TimePoint();
        }
        if (Clock::now() >= m_due) {
            m_list.trim(m_queue.options().dead);
            m_due = deadline_in(interval);
        }
    }

  private:
    // Short enough for limits of age, which are days.
    static constexpr std::chrono::milliseconds interval{60'000};

    ServedQueue& m_queue;
    DeadList m_list;
    TimePoint m_due{};
};

} // namespace orizuru::detail
