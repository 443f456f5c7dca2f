// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A few tasks of one fetch. Several threads take from them without a lock, because a lock for each
// short job would cost more than all the rest.

#include <orizuru/detail/worker/task.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace orizuru::detail {

class FetchedTasks {
  public:
    explicit FetchedTasks(std::vector<std::shared_ptr<Task>> tasks) : m_tasks(std::move(tasks)) {}

    /// Returns the next task; null when all are taken. Any thread.
    std::shared_ptr<Task> take() noexcept {
        // The count must not grow for ever: it could wrap around.
        if (empty()) {
            return nullptr;
        }
        const std::size_t index = m_taken.fetch_add(1, std::memory_order_relaxed);
        return index < m_tasks.size() ? std::move(m_tasks[index]) : nullptr;
    }
    /// Requeues all tasks that are left, the newest first: each goes to the queue's front.
    void requeue() noexcept {
        const std::size_t first = m_taken.exchange(m_tasks.size(), std::memory_order_relaxed);
        for (std::size_t i = m_tasks.size(); i > first; --i) {
            std::exchange(m_tasks[i - 1], nullptr)->requeue({});
        }
    }
    [[nodiscard]] bool empty() const noexcept {
        return m_taken.load(std::memory_order_relaxed) >= m_tasks.size();
    }

  private:
    std::vector<std::shared_ptr<Task>> m_tasks;
    std::atomic<std::size_t> m_taken{0};
};

} // namespace orizuru::detail
