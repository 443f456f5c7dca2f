// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tells when a loop that runs a queue's coroutines stands still, and when it goes on.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <chrono>
#include <string_view>

namespace orizuru::detail {

/// For one thread at a time. The queue outlives this.
class LoopWatch {
  public:
    static constexpr std::chrono::milliseconds interval{250};

    explicit LoopWatch(ServedQueue& queue) : m_queue(queue) {}

    void look() {
        const Clock::duration delay = m_queue.loop_delay();
        const bool stands = delay >= longest_delay;
        if (stands && !m_told) {
            tell(WorkerEventKind::loop_blocked, delay,
                 " ms: a handler blocks it, or no thread runs it");
        } else if (!stands && m_told) {
            tell(WorkerEventKind::loop_unblocked, m_delay, " ms");
        }
        m_told = stands;
        m_delay = delay;
    }

  private:
    static constexpr std::chrono::seconds longest_delay{1};

    void tell(WorkerEventKind kind, Clock::duration delay, std::string_view rest) const {
        const auto time = std::chrono::floor<std::chrono::milliseconds>(delay);
        m_queue.tell(WorkerEvent{
            .kind = kind,
            .detail = joined({"an executor has run nothing for ", Digits(time.count()), rest})});
    }

    ServedQueue& m_queue;
    bool m_told = false;
    Clock::duration m_delay{}; ///< the last time
};

} // namespace orizuru::detail
