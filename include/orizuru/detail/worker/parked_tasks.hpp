// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Parks tasks whose settlement Redis refuses or that run out of memory. The worker keeps their
// leases, and one thread repeats the settlements until they succeed; the threads that ran the tasks
// are free for others. Nothing more is fetched from their queues meanwhile, so their number cannot
// grow without end. Parking needs no memory: the tasks form a linked list.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/worker/dispatcher.hpp>
#include <orizuru/detail/worker/task.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// The dispatcher outlives this. All but `run` may be called from any thread.
class ParkedTasks {
  public:
    explicit ParkedTasks(Dispatcher& dispatcher) : m_dispatcher(dispatcher) {}
    ParkedTasks(const ParkedTasks&) = delete;
    ParkedTasks& operator=(const ParkedTasks&) = delete;
    ~ParkedTasks() {
        while (m_first) {
            take_out(*m_first); // else each would destroy the next one, on one stack
        }
    }

    /// Takes over a task whose settlement is to be repeated.
    void add(std::shared_ptr<Task> task) noexcept;
    /// Repeats the settlements that are due until `token` requests a stop. For one thread.
    void run(const std::stop_token& token);
    [[nodiscard]] std::vector<std::shared_ptr<Task>> all() const {
        const std::lock_guard lock(m_mutex);
        std::vector<std::shared_ptr<Task>> tasks;
        for (auto task = m_first; task; task = task->m_next_parked) {
            tasks.push_back(task);
        }
        return tasks;
    }

  private:
    using Lock = std::unique_lock<std::mutex>;

    [[nodiscard]] std::shared_ptr<Task> first_due() const;
    void try_again(Lock& lock, const std::shared_ptr<Task>& task);
    void take_out(const Task& task) noexcept;
    [[nodiscard]] bool has_of(const std::string& queue) const;

    Dispatcher& m_dispatcher;

    mutable std::mutex m_mutex; ///< guards what follows
    std::shared_ptr<Task> m_first;
    bool m_added = false;
    std::condition_variable_any m_news;
};

inline void ParkedTasks::add(std::shared_ptr<Task> task) noexcept {
    const std::lock_guard lock(m_mutex);
    task->m_next_parked = std::move(m_first);
    m_first = std::move(task);
    m_dispatcher.forbid_fetching(m_first->job().queue());
    m_added = true;
    m_news.notify_all();
}

inline void ParkedTasks::run(const std::stop_token& token) {
    Lock lock(m_mutex);
    while (!token.stop_requested()) {
        m_added = false;
        const std::shared_ptr<Task> first = first_due();
        const TimePoint due = first ? *first->retry_at() : TimePoint::max();
        if (due <= Clock::now()) {
            try_again(lock, first);
        } else {
            wait_until(m_news, lock, token, due, [this] { return m_added; });
        }
    }
}

inline std::shared_ptr<Task> ParkedTasks::first_due() const {
    std::shared_ptr<Task> first = m_first;
    for (auto task = m_first; task; task = task->m_next_parked) {
        if (*task->retry_at() < *first->retry_at()) {
            first = task;
        }
    }
    return first;
}

inline void ParkedTasks::try_again(Lock& lock, const std::shared_ptr<Task>& task) {
    {
        const Unlocked open(lock);
        task->try_again();
    }
    if (task->retry_at()) {
        return;
    }
    take_out(*task);
    const std::string& queue = task->job().queue();
    if (!has_of(queue)) {
        m_dispatcher.allow_fetching(queue);
    }
}

inline void ParkedTasks::take_out(const Task& task) noexcept {
    std::shared_ptr<Task>* link = &m_first;
    while (link->get() != &task) {
        link = &(*link)->m_next_parked;
    }
    const std::shared_ptr<Task> taken = std::move(*link);
    *link = std::move(taken->m_next_parked);
}

inline bool ParkedTasks::has_of(const std::string& queue) const {
    for (const Task* task = m_first.get(); task != nullptr; task = task->m_next_parked.get()) {
        if (task->job().queue() == queue) {
            return true;
        }
    }
    return false;
}

} // namespace orizuru::detail
