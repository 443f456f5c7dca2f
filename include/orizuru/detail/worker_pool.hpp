// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The threads of a worker, each with the task that it runs.

#include <orizuru/detail/dispatcher.hpp>
#include <orizuru/detail/task_batch.hpp>
#include <orizuru/detail/wake.hpp>
#include <orizuru/detail/worker_queue.hpp>
#include <orizuru/job_context.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// All that the threads use, and keep alive: one whose handler does not end outlives the worker.
struct WorkerCore {
    std::shared_ptr<WorkerShared> shared;
    std::vector<std::unique_ptr<WorkerQueue>> queues;
    std::unique_ptr<Dispatcher> dispatcher; // after the queues, which it uses
};

class WorkerPool {
  public:
    explicit WorkerPool(std::shared_ptr<WorkerCore> core)
        : m_state(std::make_shared<State>(std::move(core))) {}
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;
    /// Threads that have not ended go on by themselves; the dispatcher must be stopped.
    ~WorkerPool() {
        const bool ended = await_end(deadline_in(std::chrono::milliseconds(100)));
        for (std::thread& thread : m_threads) {
            ended ? thread.join() : thread.detach();
        }
    }

    /// Throws std::system_error when there can be no more threads.
    void start(int threads) {
        for (int i = 0; i < threads; ++i) {
            Slot& slot = m_state->add();
            m_threads.emplace_back([state = m_state, &slot] { state->work(slot); });
        }
    }

    /// False when the deadline came first.
    bool await_end(TimePoint deadline) {
        std::unique_lock lock(m_state->mutex);
        return m_state->ended.wait_until(lock, deadline, [this] { return m_state->alive == 0; });
    }

    [[nodiscard]] std::size_t threads() const {
        const std::lock_guard lock(m_state->mutex);
        return m_state->slots.size();
    }
    /// Calls `visit` with a thread's task, if it has one; it stays during the call.
    template <class Visit>
    void visit(std::size_t thread, Visit visit) const {
        Slot& slot = m_state->slot(thread);
        const std::lock_guard lock(slot.mutex);
        if (slot.task) {
            visit(*slot.task);
        }
    }

  private:
    struct Slot {
        std::mutex mutex;
        std::unique_ptr<Task> task;
    };

    struct State {
        explicit State(std::shared_ptr<WorkerCore> used) : core(std::move(used)) {}

        Slot& add() {
            const std::lock_guard lock(mutex);
            ++alive;
            return slots.emplace_back();
        }
        Slot& slot(std::size_t thread) {
            const std::lock_guard lock(mutex);
            return slots[thread];
        }
        void work(Slot& slot);

        std::shared_ptr<WorkerCore> core;
        std::mutex mutex; ///< guards what follows
        std::deque<Slot> slots;
        int alive = 0;
        std::condition_variable ended;
    };

    std::shared_ptr<State> m_state;
    std::vector<std::thread> m_threads;
};

inline void WorkerPool::State::work(Slot& slot) {
    std::shared_ptr<TaskBatch> batch;
    while (std::unique_ptr<Task> task = core->dispatcher->next(batch)) {
        Task& running = *task;
        {
            const std::lock_guard lock(slot.mutex);
            slot.task = std::move(task);
        }
        running.run();
        const std::lock_guard lock(slot.mutex);
        slot.task.reset();
    }
    const std::lock_guard lock(mutex);
    --alive;
    ended.notify_all();
}

} // namespace orizuru::detail
