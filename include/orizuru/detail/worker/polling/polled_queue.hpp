// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue as the thread that polls for all sees it: open or closed, waited for or not.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/polling/queue_gate.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>

namespace orizuru::detail {

/// For one thread at a time, except the gate.
class PolledQueue {
  public:
    PolledQueue(FetchingQueue& queue, const WorkerOptions& options) : m_gate(queue, options) {}

    [[nodiscard]] QueueGate& gate() noexcept { return m_gate; }
    [[nodiscard]] const QueueGate& gate() const noexcept { return m_gate; }

    /// Returns the next task if there is one. `free` is the number of free threads.
    std::shared_ptr<Task> look(const std::stop_token& token, int free);
    /// Does the same, and from now on waits for one in Redis.
    std::shared_ptr<Task> wait(const std::stop_token& token, int free) {
        if (!m_waiting && m_gate.open()) {
            m_waiting = m_due = true;
            return look(token, free);
        }
        return nullptr;
    }
    /// True while it is known to be empty: Redis says when it is no more.
    [[nodiscard]] bool waiting() const noexcept { return m_waiting; }
    /// While it waits: what for. `look` does nothing until due() was called.
    [[nodiscard]] const Awaited& awaited() const noexcept { return m_awaited; }
    void due() noexcept { m_due = m_waiting; }
    [[nodiscard]] bool is_due() const noexcept { return m_due; }

    /// Ends the wait, and returns the task that it has brought all the same.
    std::shared_ptr<Task> end_waiting(const std::stop_token& token) noexcept {
        m_due = false;
        return std::exchange(m_waiting, false) ? take_last(token) : nullptr;
    }
    /// True while tasks may come, or have come, to nobody: Redis was late with an answer.
    [[nodiscard]] bool late() const noexcept { return m_late || m_surplus; }
    /// Returns one of these, if there is one. Awaits Redis for 100 ms at most, once a second.
    std::shared_ptr<Task> take_late(const std::stop_token& token) noexcept {
        if (!late() || Clock::now() < m_late_at) {
            return nullptr;
        }
        m_late = m_gate.is_late();
        m_surplus = m_surplus && m_gate.has_surplus();
        return late() ? take_last(token) : nullptr;
    }
    /// Requeues all that was fetched and closes the connections, until the gate is open.
    void disconnect() noexcept {
        m_waiting = m_due = m_late = m_surplus = false;
        if (!m_gate.disconnected()) {
            m_gate.disconnect();
        }
    }

  private:
    // Between two tries, each of which keeps other queues from the threads for 100 ms.
    static constexpr std::chrono::milliseconds late_pause{1000};

    /// For a thread that was free, which sees what is in hand by itself.
    std::shared_ptr<Task> noting_late(std::shared_ptr<Task> task) {
        m_surplus = false;
        if (!task || m_late) { // there may be more than threads were free for
            m_late = m_gate.is_late();
        }
        return task;
    }
    /// Ends what was asked for, and notes whether more may come.
    std::shared_ptr<Task> take_last(const std::stop_token& token) noexcept {
        std::shared_ptr<Task> task = m_gate.end_waiting(token);
        m_surplus = m_gate.has_surplus();
        m_late = m_gate.is_late();
        m_late_at = task || m_surplus ? TimePoint() : Clock::now() + late_pause;
        return task;
    }

    QueueGate m_gate;
    bool m_waiting = false;
    bool m_due = false;
    bool m_late = false;    ///< a job that comes would be held until a thread is free
    bool m_surplus = false; ///< so would those that came with the last one
    TimePoint m_late_at{};  ///< next time to ask for it
    Awaited m_awaited;
};

inline std::shared_ptr<Task> PolledQueue::look(const std::stop_token& token, int free) {
    if (!m_gate.open() && !m_gate.open_to_fetched()) {
        return end_waiting(token);
    }
    if (!m_waiting) {
        return noting_late(m_gate.take(token, nullptr, free));
    }
    if (!std::exchange(m_due, false)) {
        return nullptr;
    }
    std::shared_ptr<Task> task = m_gate.take(token, &m_awaited, free);
    m_waiting = !task && m_gate.open(); // behind a task there may be more
    return m_waiting ? nullptr : noting_late(std::move(task));
}

} // namespace orizuru::detail
