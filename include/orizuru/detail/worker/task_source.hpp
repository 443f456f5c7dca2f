// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where a thread of a worker gets its tasks from.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/worker/fetched_tasks.hpp>
#include <orizuru/detail/worker/task.hpp>

#include <memory>

namespace orizuru::detail {

class TaskSource {
  public:
    /// The state that a thread keeps from one task to the next; each has its own.
    struct Turn {
        std::shared_ptr<FetchedTasks> shared; ///< with other threads
        TimePoint now{}; ///< a time that was now; TimePoint() when there may have been a wait
    };

    TaskSource() = default;
    TaskSource(const TaskSource&) = delete;
    TaskSource& operator=(const TaskSource&) = delete;
    virtual ~TaskSource() = default;

    /// The process that runs the worker.
    [[nodiscard]] virtual const ForkMark& process() const noexcept = 0;
    /// Returns the next task for the calling thread; waits until there is one. Null: the thread is
    /// to end.
    virtual std::shared_ptr<Task> next(Turn& turn) = 0;
    /// Asks Redis once for the next task, while it settles the one before: both take one round
    /// trip. Null when there is none now, and where that saves nothing.
    virtual std::shared_ptr<Task> next_beside(Turn& /*turn*/) { return nullptr; }
    /// True when a thread is to begin no task any more.
    [[nodiscard]] virtual bool ended() const noexcept { return false; }
    /// Returns the next task without asking Redis; null when there is none at hand.
    [[nodiscard]] virtual std::shared_ptr<Task> next_at_hand(const Turn& turn) const noexcept = 0;
};

} // namespace orizuru::detail
