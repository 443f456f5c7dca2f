// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// All that the threads of a worker use, and keep alive: one whose handler does not end, or that
// waits for Redis, outlives the worker.

#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/dispatcher.hpp>
#include <orizuru/detail/worker/parked_tasks.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/upkeep.hpp>
#include <orizuru/detail/worker/worker_pool.hpp>
#include <orizuru/detail/worker/worker_queue.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Each part uses those before it.
struct WorkerCore {
    std::shared_ptr<WorkerShared> shared;
    WorkerQueues queues;
    std::optional<Dispatcher> dispatcher;
    std::optional<ParkedTasks> parked;
    std::optional<Upkeep> upkeep;
    WorkerPool pool;
    Wake wake;                                   ///< for who is in Worker::run
    std::atomic<bool> closed{true};              ///< nothing is left that `close` has to do
    std::chrono::milliseconds command_timeout{}; ///< the endpoint's

    // How long after its deadline an end is over, whatever Redis does: when neither a handler nor a
    // middleware runs by then, and when one does.
    static constexpr std::chrono::milliseconds idle_patience{1000};
    static constexpr std::chrono::milliseconds busy_patience{5000};

    /// What each thread does.
    [[nodiscard]] std::vector<RunningJob> running() const;
    /// Has everything end that can: handlers are told, and have until the deadline; what they have
    /// not ended goes back. Waits for Redis until shortly before the patience is over, for one
    /// command_timeout when no handler runs any more; for stop callbacks and middleware as long as
    /// they take.
    void close(TimePoint deadline) noexcept;
    /// Closed, and no thread goes on.
    [[nodiscard]] bool ended() { return closed && pool.await_end(Clock::now()); }

  private:
    // The part of a patience for what is left to do when nothing waits for Redis any more.
    static constexpr std::chrono::milliseconds spare{300};
    // For threads that have nothing left to wait for.
    static constexpr std::chrono::milliseconds last_patience{100};
    // A handler may hold its guard, which is not to be held for longer than a settlement takes.
    static constexpr std::chrono::milliseconds guard_patience{1000};

    void end_by(TimePoint deadline) noexcept {
        std::ranges::for_each(queues, [=](const auto& queue) { queue->end_by(deadline); });
    }
    [[nodiscard]] std::vector<std::shared_ptr<Task>> tasks() const;
    template <class Tasks, class Patience>
    static void give_back(Tasks tasks, Patience patience) noexcept;
};

inline std::vector<RunningJob> WorkerCore::running() const {
    std::vector<RunningJob> jobs;
    for (std::size_t thread = 0; thread < pool.threads(); ++thread) {
        if (const auto task = pool.task(thread)) {
            const JobRun& job = task->job();
            jobs.push_back(
                {thread, job.queue(), job.id(), job.attempt(), job.since(), job.fraction()});
        }
    }
    return jobs;
}

inline void WorkerCore::close(TimePoint deadline) noexcept {
    if (upkeep) {
        upkeep->request_stop();
    }
    if (dispatcher) {
        dispatcher->request_stop();
    }
    shared->stop.request_stop(); // calls what handlers have registered, for as long as that takes
    if (dispatcher) {
        dispatcher->stop();
    }
    // A stop callback or a middleware may have taken longer.
    const TimePoint over = std::max(deadline, Clock::now());
    end_by(over + idle_patience - spare);
    if (dispatcher) {
        dispatcher->give_back();
    }
    const bool ended = pool.await_end(deadline);
    const bool idle = pool.only_settles();
    const TimePoint limit =
        idle ? std::min(over + idle_patience - spare, deadline_in(command_timeout))
             : over + busy_patience - spare;
    end_by(limit);
    // A job that has failed and was not put off by now is to be given back.
    std::ranges::for_each(queues, [](const auto& queue) { queue->cut_off(); });
    if (!ended) {
        // There may be many settlements, which the limit ends: none of them is waited for.
        give_back([this] { return tasks(); },
                  [](const Task& task) {
                      return task.handling() ? guard_patience : std::chrono::milliseconds(0);
                  });
        // One that was about to settle ends now, one that waits for Redis at the limit.
        pool.await_end((idle ? std::max(limit, Clock::now()) : Clock::now()) + last_patience);
    }
    if (parked) {
        // At most one is being settled, and may be refused.
        give_back([this] { return parked->all(); }, [](const Task&) { return guard_patience; });
    }
    if (upkeep) {
        upkeep->end(limit);
        upkeep.reset();
    }
    std::ranges::for_each(queues, [](const auto& queue) { queue->close(); });
    closed = true;
    wake.signal();
}

/// What runs.
inline std::vector<std::shared_ptr<Task>> WorkerCore::tasks() const {
    std::vector<std::shared_ptr<Task>> tasks;
    for (std::size_t thread = 0; thread < pool.threads(); ++thread) {
        if (auto task = pool.task(thread)) {
            tasks.push_back(std::move(task));
        }
    }
    return tasks;
}

template <class Tasks, class Patience>
void WorkerCore::give_back(Tasks tasks, Patience patience) noexcept {
    std::vector<std::shared_ptr<Task>> all;
    try {
        all = tasks();
    } catch (const std::bad_alloc&) {
        return; // they are the collector's
    }
    // As each goes in front of what waits, the last one to have been taken goes first.
    std::ranges::sort(all, std::ranges::greater{},
                      [](const auto& task) { return task->job().taken_at(); });
    std::ranges::for_each(all, [=](const auto& task) { task->give_back(patience(*task)); });
}

} // namespace orizuru::detail
