// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tasks whose end Redis refuses. They stay with the worker, leased, and are tried again by a thread
// that does nothing else, until somebody has mended what is wrong: whoever ran them is free. Their
// queues are left alone meanwhile, so that they do not become more and more.

#include <orizuru/detail/dispatcher.hpp>
#include <orizuru/detail/task.hpp>
#include <orizuru/detail/unlocked.hpp>
#include <orizuru/detail/wake.hpp>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <string>
#include <vector>

namespace orizuru::detail {

/// Lives no longer than the dispatcher. Any thread, except for `run`.
class ParkedTasks {
  public:
    explicit ParkedTasks(Dispatcher& dispatcher) : m_dispatcher(dispatcher) {}

    /// Takes over one that is to be tried again.
    void add(std::shared_ptr<Task> task) noexcept;
    /// Tries again what is due, until `token` says stop; for one thread.
    void run(const std::stop_token& token);
    [[nodiscard]] std::vector<std::shared_ptr<Task>> all() const {
        const std::lock_guard lock(m_mutex);
        return m_tasks;
    }

  private:
    using Lock = std::unique_lock<std::mutex>;

    void try_again(Lock& lock, const std::shared_ptr<Task>& task);

    Dispatcher& m_dispatcher;

    mutable std::mutex m_mutex; ///< guards what follows
    std::vector<std::shared_ptr<Task>> m_tasks;
    bool m_added = false;
    std::condition_variable_any m_news;
};

inline void ParkedTasks::add(std::shared_ptr<Task> task) noexcept {
    const std::lock_guard lock(m_mutex);
    try {
        m_tasks.push_back(std::move(task));
    } catch (const std::bad_alloc&) {
        return; // its guards reject
    }
    m_dispatcher.hold_up(m_tasks.back()->job().queue());
    m_added = true;
    m_news.notify_all();
}

inline void ParkedTasks::run(const std::stop_token& token) {
    Lock lock(m_mutex);
    while (!token.stop_requested()) {
        m_added = false;
        const auto first = std::ranges::min_element(
            m_tasks, {}, [](const auto& task) { return *task->retry_at(); });
        const TimePoint due = first == m_tasks.end() ? TimePoint::max() : *(*first)->retry_at();
        if (due <= Clock::now()) {
            try_again(lock, std::shared_ptr(*first));
        } else {
            m_news.wait_until(lock, token, due, [this] { return m_added; });
        }
    }
}

inline void ParkedTasks::try_again(Lock& lock, const std::shared_ptr<Task>& task) {
    unlocked(lock, [&] { task->try_again(); });
    if (task->retry_at()) {
        return;
    }
    std::erase(m_tasks, task);
    const std::string& queue = task->job().queue();
    if (std::ranges::none_of(m_tasks,
                             [&](const auto& other) { return other->job().queue() == queue; })) {
        m_dispatcher.serve_again(queue);
    }
}

} // namespace orizuru::detail
