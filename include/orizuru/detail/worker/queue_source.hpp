// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Takes tasks from a queue through the user's middleware, and leaves a queue alone for a while that
// was paused, held up, passed over or cannot be read.

#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/task_batch.hpp>
#include <orizuru/detail/worker/worker_queue.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// `take` and `take_in_hand` are for one thread at a time, all else for any.
class QueueSource {
  public:
    QueueSource(WorkerQueue& queue, const WorkerOptions& options)
        : m_queue(queue), m_options(options) {}

    /// The next task; none when there was none in time, or `token` said stop.
    /// `free` threads are there for what is fetched.
    std::shared_ptr<Task> take(const std::stop_token& token, std::chrono::milliseconds timeout,
                               int free) noexcept;
    /// A task that was taken and what came with it; none when it came alone.
    std::shared_ptr<TaskBatch> take_in_hand(std::shared_ptr<Task>& first) noexcept;
    /// Gives back what was fetched and not taken, when nobody takes any more.
    void give_back() noexcept { m_queue.give_back_fetched(); }
    /// The same for a while, for the thread in `take`: what was fetched ahead is for others then.
    void put_down() noexcept {
        m_queue.give_back_fetched();
        m_queue.close();
        m_down = true;
    }
    [[nodiscard]] bool down() const noexcept { return m_down; }

    void pause() noexcept { m_paused = true; }
    /// Returns whether it was paused.
    bool resume() noexcept { return m_paused.exchange(false); }
    [[nodiscard]] bool paused() const noexcept { return m_paused; }
    /// Nothing more is fetched until it is served again.
    void hold_up() noexcept { m_held_up = true; }
    void serve_again() noexcept { m_held_up = false; }
    [[nodiscard]] const std::string& queue() const noexcept { return m_queue.queue(); }
    void close_for(std::chrono::milliseconds time) noexcept { m_opens_at = Clock::now() + time; }

    [[nodiscard]] bool open() const noexcept {
        return !m_paused && !m_held_up && Clock::now() >= m_opens_at.load();
    }
    /// When it opens by itself; never, when it has to be resumed or served again, or is open.
    [[nodiscard]] TimePoint opens_at() const noexcept {
        const TimePoint time = m_opens_at;
        return m_paused || m_held_up || time <= Clock::now() ? TimePoint::max() : time;
    }

  private:
    static constexpr std::chrono::milliseconds failure_pause{1000};

    bool fetch_inside(std::size_t middleware, const std::function<bool()>& fetch);
    void fail(std::string_view why) noexcept {
        close_for(failure_pause);
        m_queue.tell(
            {.kind = WorkerEventKind::fetch_failed, .detail = why, .retry_in = failure_pause});
    }

    WorkerQueue& m_queue;
    const WorkerOptions& m_options;
    bool m_down = false; ///< for the thread in `take`
    std::atomic<bool> m_paused{false};
    std::atomic<bool> m_held_up{false};
    std::atomic<TimePoint> m_opens_at{TimePoint()};
};

inline std::shared_ptr<Task> QueueSource::take(const std::stop_token& token,
                                               std::chrono::milliseconds timeout,
                                               int free) noexcept {
    std::shared_ptr<Task> task;
    bool asked = false;
    const auto fetch = [&] {
        asked = true;
        m_queue.limit(free);
        m_down = false;
        task = m_queue.take(token, timeout);
        return task != nullptr;
    };
    try {
        fetch_inside(0, std::ref(fetch)); // copied, it would need memory each time
        if (!asked) {
            close_for(m_options.recheck);
        }
    } catch (...) {
        tell_thrown([this](std::string_view what) { fail(what); });
    }
    return task;
}

inline bool QueueSource::fetch_inside(std::size_t middleware, const std::function<bool()>& fetch) {
    const auto& around = m_options.fetch_middleware;
    return middleware == around.size() ? fetch() : around[middleware](m_queue.queue(), [&] {
        return fetch_inside(middleware + 1, fetch);
    });
}

inline std::shared_ptr<TaskBatch> QueueSource::take_in_hand(std::shared_ptr<Task>& first) noexcept {
    if (m_queue.in_hand() == 0) {
        return nullptr;
    }
    try {
        std::vector<std::shared_ptr<Task>> tasks;
        tasks.push_back(std::move(first));
        while (const std::size_t in_hand = m_queue.in_hand()) {
            if (std::shared_ptr<Task> task = take({}, std::chrono::milliseconds(0), 1)) {
                tasks.push_back(std::move(task));
            } else if (m_queue.in_hand() == in_hand) {
                break; // passed over
            }
        }
        return std::make_shared<TaskBatch>(std::move(tasks));
    } catch (const std::bad_alloc&) {
        return nullptr; // their guards have rejected them
    }
}

} // namespace orizuru::detail
