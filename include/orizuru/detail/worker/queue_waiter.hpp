// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A thread that waits in Redis for a queue's next task, on request. It requeues a task that no free
// thread takes from it at once.

#include <orizuru/detail/worker/queue_gate.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <thread>
#include <utility>

namespace orizuru::detail {

/// Everything is called under `mutex`, except the constructor and the destructor.
class QueueWaiter {
  public:
    /// Calls `news` under the mutex when it has brought a task, and when it becomes idle.
    QueueWaiter(QueueGate& gate, std::mutex& mutex, std::function<void()> news)
        : m_gate(gate), m_mutex(mutex), m_news(std::move(news)), m_thread([this] { live(); }) {}
    QueueWaiter(const QueueWaiter&) = delete;
    QueueWaiter& operator=(const QueueWaiter&) = delete;
    /// Call stop() first.
    ~QueueWaiter() = default;

    /// True when it neither waits nor has a task: others may take from the gate.
    [[nodiscard]] bool idle() const noexcept { return m_state == State::idle; }
    /// True from cancel() until it has become idle or brought a task.
    [[nodiscard]] bool cancelled() const noexcept { return m_state == State::cancelled; }

    /// Begins a wait when it is idle and the gate is open.
    void start() noexcept;
    void cancel() {
        if (m_state == State::waiting) {
            m_state = State::cancelled;
            m_cancel.request_stop();
        }
    }
    /// Returns the task that it has brought; null when there is none.
    std::shared_ptr<Task> take() noexcept {
        if (m_brought) {
            m_state = State::idle;
            m_turn.notify_one();
        }
        return std::move(m_brought);
    }
    /// Ends the wait for good. It becomes idle in a moment.
    void stop() {
        m_stopped = true;
        cancel();
        m_turn.notify_one();
    }

  private:
    enum class State {
        idle,
        waiting,   ///< in Redis: the queue is empty
        cancelled, ///< the wait has not ended yet
        brought    ///< has a task, which will be taken or requeued
    };

    // How long a task waits here for a thread that is about to be free.
    static constexpr std::chrono::milliseconds patience{10};
    static constexpr std::chrono::milliseconds longest_wait{60'000};
    static constexpr std::chrono::milliseconds failure_pause{1000};

    void live();
    void become(State state) {
        m_state = state;
        m_news();
    }

    QueueGate& m_gate;
    std::mutex& m_mutex; ///< guards what follows
    std::function<void()> m_news;
    State m_state = State::idle;
    bool m_stopped = false;
    std::shared_ptr<Task> m_brought;
    std::stop_source m_cancel;
    std::condition_variable m_turn;
    std::jthread m_thread; // last: it uses all of the above
};

inline void QueueWaiter::start() noexcept {
    if (m_state != State::idle || m_stopped || !m_gate.open()) {
        return;
    }
    try {
        m_cancel = std::stop_source();
    } catch (const std::bad_alloc&) {
        m_gate.close_for(failure_pause);
        return;
    }
    m_state = State::waiting;
    m_turn.notify_one();
}

inline void QueueWaiter::live() {
    std::unique_lock lock(m_mutex);
    const auto is_due = [this] { return m_state == State::waiting || m_state == State::cancelled; };
    while (true) {
        m_turn.wait(lock, [&] { return m_stopped || is_due(); });
        if (!is_due()) {
            return; // stopped
        }
        const std::stop_token token = m_cancel.get_token();
        lock.unlock();
        std::shared_ptr<Task> task = m_gate.take(token, longest_wait, 1);
        lock.lock();
        m_brought = std::move(task);
        become(m_brought ? State::brought : State::idle);
        m_turn.wait_for(lock, patience, [this] { return m_stopped || m_state != State::brought; });
        if (m_brought) {
            // No thread is free here; another worker may have one.
            task = std::move(m_brought);
            lock.unlock();
            task->requeue({});
            task.reset();
            lock.lock();
            become(State::idle);
        }
    }
}

} // namespace orizuru::detail
