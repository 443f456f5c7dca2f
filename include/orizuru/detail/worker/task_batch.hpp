// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tasks that came with one fetch, for several threads to take from without a lock: of short jobs a
// lock for each would cost more than all the rest.

#include <orizuru/detail/worker/task.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace orizuru::detail {

class TaskBatch {
  public:
    explicit TaskBatch(std::vector<std::shared_ptr<Task>> tasks) : m_tasks(std::move(tasks)) {}

    /// The next one; null when all are taken. Any thread.
    std::shared_ptr<Task> take() noexcept {
        // Not beyond the end for ever: the count could come round.
        if (empty()) {
            return nullptr;
        }
        const std::size_t index = m_taken.fetch_add(1, std::memory_order_relaxed);
        return index < m_tasks.size() ? std::move(m_tasks[index]) : nullptr;
    }
    /// Gives back all that are left, the newest first: each one goes in front of what waits.
    void give_back() noexcept {
        const std::size_t first = m_taken.exchange(m_tasks.size(), std::memory_order_relaxed);
        for (std::size_t i = m_tasks.size(); i > first; --i) {
            std::exchange(m_tasks[i - 1], nullptr)->give_back({});
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
