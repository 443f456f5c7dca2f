// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The threads of a worker, and the task that each of them runs.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/forked_child.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/worker/parked_tasks.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/task_source.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::detail {

class WorkerPool {
  public:
    WorkerPool() = default;
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;
    /// Call leave() first.
    ~WorkerPool() = default;

    /// Starts a thread for each of the sources, which keep this pool and `parked` alive. They take
    /// tasks once all of them have started. Throws std::system_error when the process can have no
    /// more threads: then none takes a task, and start() may be called again once they have ended.
    void start(const std::vector<std::shared_ptr<TaskSource>>& sources, ParkedTasks& parked);
    /// Waits until all threads have ended. Returns false when the deadline came first.
    bool await_end(TimePoint deadline) {
        std::unique_lock lock(m_mutex);
        return wait_until(m_ended, lock, deadline, [this] { return m_alive == 0; });
    }
    /// Lets the threads go. Those that have not ended go on by themselves.
    void leave();

    /// Returns how many threads have not ended.
    [[nodiscard]] int alive() const {
        const std::lock_guard lock(m_mutex);
        return m_alive;
    }
    [[nodiscard]] std::size_t threads() const {
        const std::lock_guard lock(m_mutex);
        return m_slots.size();
    }
    /// True when no thread runs a handler or middleware of the user: each has ended or only
    /// settles.
    [[nodiscard]] bool only_settles() const {
        const std::lock_guard lock(m_mutex);
        return m_alive <=
               std::ranges::count_if(m_slots, [](const Slot& slot) { return slot.only_settles(); });
    }
    /// Returns the task that a thread runs; null when it is free.
    [[nodiscard]] std::shared_ptr<Task> task(std::size_t thread) const {
        const std::lock_guard lock(m_mutex);
        return m_slots[thread].task();
    }

  private:
    class Slot {
      public:
        [[nodiscard]] std::shared_ptr<Task> task() const {
            const std::lock_guard lock(m_mutex);
            return m_task;
        }
        [[nodiscard]] bool only_settles() const {
            const std::lock_guard lock(m_mutex);
            return m_task && !m_task->handling();
        }
        /// Destroys the task before it outside the lock.
        void hold(std::shared_ptr<Task> task) {
            const std::lock_guard lock(m_mutex);
            m_task.swap(task);
        }

      private:
        mutable std::mutex m_mutex;
        std::shared_ptr<Task> m_task;
    };

    void live(TaskSource& source, ParkedTasks& parked, Slot& slot);
    static bool run(Task& task, TaskSource& source, TaskSource::Turn& turn,
                    std::shared_ptr<Task>& next);

    mutable std::mutex m_mutex; ///< guards what follows
    std::deque<Slot> m_slots;
    int m_alive = 0;
    bool m_given_up = false;
    std::condition_variable m_ended;
    std::vector<std::thread> m_threads; ///< for the thread that calls start() and leave()
};

inline void WorkerPool::start(const std::vector<std::shared_ptr<TaskSource>>& sources,
                              ParkedTasks& parked) {
    const std::lock_guard lock(m_mutex); // the new threads wait for it
    try {
        m_given_up = false;
        m_threads.reserve(sources.size());
        while (m_slots.size() < sources.size()) {
            m_slots.emplace_back();
        }
        for (std::size_t i = 0; i < sources.size(); ++i) {
            m_threads.emplace_back([this, source = sources[i], &parked, &slot = m_slots[i]] {
                live(*source, parked, slot);
            });
            ++m_alive;
        }
    } catch (...) {
        m_given_up = true;
        throw;
    }
}

inline void WorkerPool::live(TaskSource& source, ParkedTasks& parked, Slot& slot) {
    std::unique_lock lock(m_mutex);
    const bool taking = !m_given_up;
    lock.unlock();
    TaskSource::Turn turn;
    std::shared_ptr<Task> next = taking ? source.next(turn) : nullptr;
    while (next) {
        Task& task = *next;
        slot.hold(std::move(next));
        const bool unsettled = run(task, source, turn, next);
        if (unsettled) {
            parked.add(slot.task());
        }
        if (!next) {
            next = source.next_at_hand(turn);
        }
        if (!next) {
            slot.hold(nullptr);
            next = source.next(turn);
        }
    }
    turn.shared.reset();
    lock.lock();
    --m_alive;
    m_ended.notify_all();
}

/// Runs the task, and sets `next` if it has asked for that meanwhile. Returns whether to park the
/// task.
inline bool WorkerPool::run(Task& task, TaskSource& source, TaskSource::Turn& turn,
                            std::shared_ptr<Task>& next) {
    const EndOfForks end(source.process()); // such as one of a policy of retries
    const Task::Ran ran = task.run(turn.now);
    turn.now = ran.ended;
    if (!ran.settling) {
        return ran.unsettled;
    }
    // Both take one round trip.
    next = source.next_beside(turn);
    const bool unsettled = task.finish();
    if (next && source.ended()) {
        std::exchange(next, nullptr)->requeue({});
    }
    return unsettled;
}

inline void WorkerPool::leave() {
    const bool ended = await_end(Clock::now());
    for (std::thread& thread : m_threads) {
        ended ? thread.join() : thread.detach();
    }
    m_threads.clear();
}

} // namespace orizuru::detail
