// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The queues of a dispatcher: each with the gate through which free threads poll it, and the waiter
// that waits in Redis while it is empty.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/worker/polling_sequence.hpp>
#include <orizuru/detail/worker/queue_gate.hpp>
#include <orizuru/detail/worker/queue_waiter.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

struct PolledQueue {
    /// `mutex` and `news` are the waiter's.
    PolledQueue(ServedQueue& queue, const WorkerOptions& options, std::mutex& mutex,
                std::function<void()> news)
        : gate(queue, options), waiter(gate, mutex, std::move(news)) {}

    /// Returns false when it was paused already.
    bool pause() {
        if (gate.paused()) {
            return false;
        }
        gate.pause();
        waiter.cancel();
        return true;
    }
    void forbid_fetching() {
        gate.forbid_fetching();
        waiter.cancel();
    }

    QueueGate gate;
    QueueWaiter waiter;
};

/// Everything is called under the waiters' mutex, except the constructor, the destructor, `add`
/// and `requeue`.
class PolledQueues {
  public:
    PolledQueues(const WorkerOptions& options, std::mutex& mutex, std::function<void()> news)
        : m_options(options), m_mutex(mutex), m_news(std::move(news)), m_sequence(options.order) {}

    /// Adds an open queue, which outlives this.
    void add(ServedQueue& queue) {
        m_sequence.add(queue.options().weight);
        m_queues.emplace_back(queue, m_options, m_mutex, m_news);
    }
    /// Requeues all tasks that were fetched and not taken. Call it when no thread takes any more.
    void requeue() noexcept {
        std::ranges::for_each(m_queues, [](PolledQueue& queue) { queue.gate.requeue(); });
    }

    [[nodiscard]] PolledQueue& named(const std::string& name) {
        return *std::ranges::find(m_queues, name,
                                  [](const PolledQueue& queue) { return queue.gate.queue(); });
    }
    [[nodiscard]] PolledQueue& operator[](std::size_t index) { return m_queues[index]; }
    /// The indices in the order in which to poll the queues this time. Valid until the next call.
    [[nodiscard]] const std::vector<std::size_t>& next_sequence() { return m_sequence.next(); }

    [[nodiscard]] bool all_idle() const {
        return std::ranges::all_of(m_queues,
                                   [](const PolledQueue& queue) { return queue.waiter.idle(); });
    }
    [[nodiscard]] bool any_cancelled() const {
        return std::ranges::any_of(
            m_queues, [](const PolledQueue& queue) { return queue.waiter.cancelled(); });
    }
    /// When the first closed gate opens by itself; TimePoint::max() when none does.
    [[nodiscard]] TimePoint opens_at() const {
        TimePoint first = TimePoint::max();
        for (const PolledQueue& queue : m_queues) {
            first = std::min(first, queue.gate.opens_at());
        }
        return first;
    }
    void start_waiting() {
        std::ranges::for_each(m_queues, [](PolledQueue& queue) { queue.waiter.start(); });
    }
    void cancel_waiting() {
        std::ranges::for_each(m_queues, [](PolledQueue& queue) { queue.waiter.cancel(); });
    }
    void stop_waiters() {
        std::ranges::for_each(m_queues, [](PolledQueue& queue) { queue.waiter.stop(); });
    }

  private:
    const WorkerOptions& m_options;
    std::mutex& m_mutex;
    std::function<void()> m_news;
    PollingSequence m_sequence;
    std::deque<PolledQueue> m_queues; // which cannot be moved
};

} // namespace orizuru::detail
