// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Decides which task a free thread gets. Free threads take turns at leading: the leader polls the
// queues in their order and runs the task it finds; another free thread takes over as leader. So
// nothing is fetched while no thread is free, and no task goes from thread to thread. All threads
// share the tasks of a fetch that returned several.
//
// While all queues are empty, each queue's waiter waits in Redis on a thread of its own. It goes on
// as long as some thread is free and a moment longer, because it costs several commands to end a
// wait and begin it again. A task that a waiter brings while no thread is free is requeued.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/worker/fetched_tasks.hpp>
#include <orizuru/detail/worker/polled_queues.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace orizuru::detail {

class Dispatcher {
  public:
    /// The queues are open, and outlive the dispatcher.
    Dispatcher(const ServedQueues& queues, std::shared_ptr<const WorkerShared> shared);
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;
    /// No thread is inside `next` any more.
    ~Dispatcher() { stop(); }

    /// Returns the next task for the calling thread; waits until there is one. Null means stopped.
    /// Each thread passes a pointer of its own to the tasks that it shares, null at first.
    std::shared_ptr<Task> next(std::shared_ptr<FetchedTasks>& shared);

    /// Stops taking tasks from the queue until resume().
    void pause(const std::string& queue) {
        const Lock lock(m_mutex);
        if (m_queues.named(queue).pause()) {
            tell_news();
        }
    }
    void resume(const std::string& queue) {
        const Lock lock(m_mutex);
        if (m_queues.named(queue).gate.resume()) {
            tell_news();
        }
    }
    /// Stops fetching from the queue until allow_fetching(). Tasks that were fetched go on.
    void forbid_fetching(const std::string& queue) {
        const Lock lock(m_mutex);
        m_queues.named(queue).forbid_fetching();
    }
    void allow_fetching(const std::string& queue) {
        const Lock lock(m_mutex);
        m_queues.named(queue).gate.allow_fetching();
        tell_news();
    }
    /// Stops taking tasks from any queue, for good.
    void quiet();
    /// Ends `next` for all threads.
    void request_stop();
    /// Does the same, and returns when no thread takes from a queue any more.
    void stop();
    /// Requeues all tasks that were fetched and that no thread has begun. Once, after stop().
    void requeue() noexcept;

  private:
    using Lock = std::unique_lock<std::mutex>;

    // Most jobs take less time.
    static constexpr std::chrono::milliseconds busy_patience{20};

    std::shared_ptr<Task> await_task(Lock& lock);
    std::shared_ptr<Task> lead(Lock& lock);
    std::shared_ptr<Task> poll_queues(Lock& lock);
    std::shared_ptr<Task> take(Lock& lock, PolledQueue& queue);
    void await_news(Lock& lock);
    void watch();
    [[nodiscard]] bool may_wait() const noexcept { return !m_quiet && !m_stopped; }
    [[nodiscard]] bool has_fetched() const noexcept { return m_fetched && !m_fetched->empty(); }
    void tell_news() noexcept {
        m_news = true;
        m_news_told.notify_one();
        m_at_rest.notify_all();
    }

    std::shared_ptr<const WorkerShared> m_shared;

    std::mutex m_mutex; ///< guards what follows
    int m_free = 0;     ///< threads inside `next`
    int m_followers = 0;
    bool m_led = false;
    bool m_called = false; ///< a follower was called and has not woken up yet
    bool m_quiet = false;
    std::atomic<bool> m_stopped{false};
    bool m_news = false;                     ///< for the leader
    std::shared_ptr<FetchedTasks> m_fetched; ///< for all threads
    std::condition_variable m_turn;
    std::condition_variable m_news_told;
    std::condition_variable m_at_rest;
    std::condition_variable m_busy;
    PolledQueues m_queues; // after all members that the waiters' threads use
    std::jthread m_watch;
};

inline Dispatcher::Dispatcher(const ServedQueues& queues,
                              std::shared_ptr<const WorkerShared> shared)
    : m_shared(std::move(shared)), m_queues(m_shared->options, m_mutex, [this] { tell_news(); }) {
    try {
        for (const auto& queue : queues) {
            m_queues.add(*queue);
        }
        m_watch = std::jthread([this] { watch(); });
    } catch (...) {
        stop();
        throw;
    }
}

inline std::shared_ptr<Task> Dispatcher::next(std::shared_ptr<FetchedTasks>& shared) {
    while (true) {
        if (shared && !m_stopped) {
            if (std::shared_ptr<Task> task = shared->take()) {
                return task;
            }
        }
        Lock lock(m_mutex);
        ++m_free;
        std::shared_ptr<Task> task = await_task(lock);
        shared = m_fetched;
        --m_free;
        if (m_free == 0 && !m_queues.all_idle()) {
            m_busy.notify_one();
        } else if (m_followers > 0 && !m_called) {
            // Call one at a time: this thread may be back before the other one has woken up.
            m_called = true;
            lock.unlock();
            m_turn.notify_one();
        }
        if (task || m_stopped) {
            return task;
        }
    }
}

/// Null when the thread has to look into the shared tasks, or to end.
inline std::shared_ptr<Task> Dispatcher::await_task(Lock& lock) {
    if (m_led) {
        ++m_followers;
        m_turn.wait(lock, [this] {
            m_called = false;
            return !m_led || m_stopped;
        });
        --m_followers;
    }
    if (m_stopped || has_fetched()) {
        return nullptr;
    }
    m_led = true;
    std::shared_ptr<Task> task = lead(lock);
    m_led = false;
    m_at_rest.notify_all();
    return task;
}

inline std::shared_ptr<Task> Dispatcher::lead(Lock& lock) {
    while (!m_stopped) {
        m_news = false;
        std::shared_ptr<Task> task = poll_queues(lock);
        if (task || has_fetched()) {
            return task;
        }
        await_news(lock);
    }
    return nullptr;
}

/// Returns the task of the first queue that has one; null when that queue had several, which are
/// shared then.
inline std::shared_ptr<Task> Dispatcher::poll_queues(Lock& lock) {
    // A cancelled waiter may still return a more urgent job; wait for it.
    m_news_told.wait(lock, [this] { return m_stopped || !m_queues.any_cancelled(); });
    for (const std::size_t index : m_queues.next_sequence()) {
        PolledQueue& queue = m_queues[index];
        if (m_stopped) {
            break;
        }
        if (m_quiet || queue.gate.paused()) {
            // A waiter that still brings a task requeues it.
            if (queue.waiter.idle() && !queue.gate.disconnected()) {
                lock.unlock();
                queue.gate.disconnect();
                lock.lock();
            }
            continue;
        }
        if (std::shared_ptr<Task> task = queue.waiter.take()) {
            return task;
        }
        // A queue with a waiter is known to be empty.
        if (!queue.waiter.idle() || !queue.gate.open()) {
            continue;
        }
        std::shared_ptr<Task> task = take(lock, queue);
        if (task || has_fetched()) {
            return task;
        }
        if (m_free > 1 && may_wait()) {
            queue.waiter.start();
        }
    }
    return nullptr;
}

/// Shares all tasks of a fetch that returned several. The leader takes none of them yet: it may be
/// put to sleep when it calls another thread, and acks cost the least when the oldest message is
/// acked first.
inline std::shared_ptr<Task> Dispatcher::take(Lock& lock, PolledQueue& queue) {
    const int free = m_free;
    lock.unlock();
    std::shared_ptr<Task> task = queue.gate.take({}, std::chrono::milliseconds(0), free);
    std::shared_ptr<FetchedTasks> fetched = task ? queue.gate.take_fetched(task) : nullptr;
    lock.lock();
    m_fetched = std::move(fetched);
    return task;
}

/// All queues were empty.
inline void Dispatcher::await_news(Lock& lock) {
    if (may_wait()) {
        m_queues.start_waiting();
    }
    const TimePoint opens_at = m_queues.opens_at();
    const auto is_news = [this] { return m_news || m_stopped; };
    if (opens_at == TimePoint::max()) {
        m_news_told.wait(lock, is_news);
    } else {
        m_news_told.wait_until(lock, opens_at, is_news);
    }
}

/// Cancels the waiters when no thread was free for a while.
inline void Dispatcher::watch() {
    Lock lock(m_mutex);
    while (!m_stopped) {
        m_busy.wait(lock, [this] { return m_stopped || (m_free == 0 && !m_queues.all_idle()); });
        if (!m_busy.wait_for(lock, busy_patience, [this] { return m_stopped || m_free > 0; })) {
            m_queues.cancel_waiting();
            // There is nothing to do until they are idle.
            m_at_rest.wait(lock, [this] { return m_stopped || m_free > 0 || m_queues.all_idle(); });
        }
    }
}

inline void Dispatcher::quiet() {
    const Lock lock(m_mutex);
    m_quiet = true;
    m_queues.cancel_waiting();
    tell_news();
}

inline void Dispatcher::request_stop() {
    const Lock lock(m_mutex);
    m_stopped = true;
    m_queues.stop_waiters();
    m_turn.notify_all();
    m_news_told.notify_all();
    m_busy.notify_all();
    m_at_rest.notify_all();
}

inline void Dispatcher::stop() {
    request_stop();
    Lock lock(m_mutex);
    m_at_rest.wait(lock, [this] { return !m_led && m_queues.all_idle(); });
}

inline void Dispatcher::requeue() noexcept {
    // Requeued tasks are served next, so the newest goes first.
    m_queues.requeue();
    if (m_fetched) {
        m_fetched->requeue();
    }
}

} // namespace orizuru::detail
