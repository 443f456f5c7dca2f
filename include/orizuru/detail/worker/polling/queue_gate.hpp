// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The gate to a queue: takes its tasks through the user's fetch middleware. It is closed while the
// queue is paused, fetching is forbidden or as many of its tasks run as may, and for a moment after
// a middleware has passed the queue over or a fetch has failed.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/forked_child.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/redis/limits.hpp>
#include <orizuru/detail/worker/fetched_tasks.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/limits/queue_limit.hpp>
#include <orizuru/detail/worker/task.hpp>
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

/// One thread at a time calls `take`, `end_waiting`, `take_fetched`, `in_hand`, `open_to_fetched`
/// and `disconnect`; any thread calls the rest.
class QueueGate {
  public:
    QueueGate(FetchingQueue& queue, const WorkerOptions& options)
        : m_queue(queue), m_options(options) {}

    /// Returns the next task, as FetchingQueue::take does. Closes the gate for a while when the
    /// middleware passes the queue over, or anything throws. `free` is the number of free threads.
    std::shared_ptr<Task> take(const std::stop_token& token, Awaited* awaited, int free) noexcept;
    /// Ends the wait in Redis, and returns the task that it has brought all the same.
    std::shared_ptr<Task> end_waiting(const std::stop_token& token) noexcept;
    /// Returns `first`, which was taken, and a few of the tasks that were fetched with it; null,
    /// with `first` untouched, when it came alone.
    std::shared_ptr<FetchedTasks> take_fetched(std::shared_ptr<Task>& first) noexcept;
    /// Returns how many jobs were fetched and not taken yet.
    [[nodiscard]] std::size_t in_hand() const noexcept { return m_queue.in_hand(); }
    /// Requeues all tasks that were fetched and not taken. Call it when no thread takes any more.
    void requeue() noexcept {
        withdraw();
        m_queue.requeue_fetched();
    }
    /// Requeues them and closes the connections until the next `take`: others may take the jobs
    /// that were fetched ahead.
    void disconnect() noexcept {
        requeue();
        m_queue.disconnect();
        m_disconnected = true;
    }
    [[nodiscard]] bool disconnected() const noexcept { return m_disconnected; }

    void pause() noexcept { m_paused = true; }
    void resume() noexcept { m_paused = false; }
    [[nodiscard]] bool paused() const noexcept { return m_paused; }
    /// Lets nothing more be fetched until allow_fetching().
    void forbid_fetching() noexcept { m_fetching_forbidden = true; }
    void allow_fetching() noexcept { m_fetching_forbidden = false; }
    [[nodiscard]] const std::string& queue() const noexcept { return m_queue.queue(); }
    void close_for(std::chrono::milliseconds time) noexcept { m_opens_at = Clock::now() + time; }

    [[nodiscard]] bool open() const noexcept {
        const TimePoint at = m_opens_at; // to ask the clock costs as much as a lock
        return !closed() && (at == TimePoint() || Clock::now() >= at);
    }
    /// Fetching is forbidden, but there are jobs that were fetched before, and they go on.
    [[nodiscard]] bool open_to_fetched() const noexcept {
        return m_fetching_forbidden && !m_paused && in_hand() > 0 && !m_queue.full() &&
               Clock::now() >= m_opens_at.load();
    }
    /// Returns when the gate opens or has opened by itself; TimePoint::max() when `news` says so.
    [[nodiscard]] TimePoint opens_at() const noexcept {
        return closed() ? TimePoint::max() : m_opens_at.load();
    }

  private:
    static constexpr std::chrono::milliseconds failure_pause{1000};
    // Few enough that their memory comes from what malloc keeps for the thread, and many enough
    // that a turn costs little for each.
    static constexpr std::size_t most_shared = 4;

    [[nodiscard]] bool closed() const noexcept {
        return m_paused || m_fetching_forbidden || m_queue.full() ||
               (m_queue.limit() != nullptr && !m_queue.limit()->answered());
    }
    void withdraw() noexcept {
        if (m_queue.limit() != nullptr) {
            m_queue.limit()->withdraw();
        }
    }
    std::shared_ptr<Task> take_most(const std::stop_token& token, Awaited* awaited, int free,
                                    int most) {
        m_queue.bound(free, most);
        m_disconnected = false;
        return m_queue.take(token, awaited);
    }
    std::shared_ptr<Task> take_within(QueueLimit& limit, const std::stop_token& token,
                                      Awaited* awaited, int free);
    bool fetch_inside(std::size_t middleware, const std::function<bool()>& fetch);
    void fail(std::string_view why) noexcept {
        close_for(failure_pause);
        m_queue.tell(
            {.kind = WorkerEventKind::fetch_failed, .detail = why, .retry_in = failure_pause});
    }

    FetchingQueue& m_queue;
    const WorkerOptions& m_options;
    bool m_disconnected = false; ///< for the thread inside `take`
    std::atomic<bool> m_paused{false};
    std::atomic<bool> m_fetching_forbidden{false};
    std::atomic<TimePoint> m_opens_at{TimePoint()};
};

inline std::shared_ptr<Task> QueueGate::take(const std::stop_token& token, Awaited* awaited,
                                             int free) noexcept {
    std::shared_ptr<Task> task;
    bool asked = false;
    const auto fetch = [&] {
        asked = true;
        QueueLimit* const limit = m_queue.limit();
        task = limit == nullptr ? take_most(token, awaited, free, largest_batch)
                                : take_within(*limit, token, awaited, free);
        return task != nullptr;
    };
    try {
        fetch_inside(0, std::ref(fetch)); // a copy would allocate each time
        if (!asked) {
            close_for(m_options.recheck);
            if (awaited != nullptr && !m_disconnected) {
                if (const auto brought = m_queue.take({}, nullptr)) {
                    brought->requeue({}); // for others
                }
            }
        }
    } catch (...) {
        tell_thrown([this](std::string_view what) { fail(what); });
    }
    return task;
}

/// Takes as many as the limit grants. What it has not granted yet is handed to it: a job that a
/// wait in Redis has brought, say.
inline std::shared_ptr<Task> QueueGate::take_within(QueueLimit& limit, const std::stop_token& token,
                                                    Awaited* awaited, int free) {
    if (std::shared_ptr<Task> permitted = limit.take_permitted()) {
        return permitted;
    }
    std::shared_ptr<Task> task;
    if (awaited == nullptr && in_hand() == 0) {
        const int most = limit.granted();
        if (most == 0) {
            limit.ask(m_queue.room(free));
            return nullptr;
        }
        const auto tell = at_exit([&] {
            limit.fetched(!task ? 0 : m_queue.in_batches() ? 1 : 1 + static_cast<int>(in_hand()));
        });
        task = take_most(token, nullptr, free, most);
    } else {
        task = take_most(token, awaited, free, 1);
    }
    if (task && !limit.permit(*task)) {
        limit.ask_for(std::move(task));
        return nullptr;
    }
    return task;
}

inline std::shared_ptr<Task> QueueGate::end_waiting(const std::stop_token& token) noexcept {
    try {
        std::shared_ptr<Task> brought = m_queue.take(token, nullptr);
        if (QueueLimit* const limit = m_queue.limit()) {
            limit->leave(std::exchange(brought, nullptr));
        }
        return brought;
    } catch (...) {
        tell_thrown([this](std::string_view what) { fail(what); });
        return nullptr;
    }
}

inline bool QueueGate::fetch_inside(std::size_t middleware, const std::function<bool()>& fetch) {
    const auto& around = m_options.fetch_middleware;
    if (middleware == around.size()) {
        return fetch();
    }
    const EndOfForks end(m_queue.shared().process);
    return around[middleware](m_queue.queue(), [&] { return fetch_inside(middleware + 1, fetch); });
}

inline std::shared_ptr<FetchedTasks>
QueueGate::take_fetched(std::shared_ptr<Task>& first) noexcept {
    if (m_queue.in_hand() == 0) {
        return nullptr;
    }
    try {
        std::vector<std::shared_ptr<Task>> tasks;
        tasks.push_back(std::move(first));
        while (const std::size_t in_hand = tasks.size() < most_shared ? this->in_hand() : 0) {
            if (std::shared_ptr<Task> task = take({}, nullptr, 1)) {
                tasks.push_back(std::move(task));
            } else if (this->in_hand() == in_hand) {
                break; // a middleware passed the queue over
            }
        }
        return std::make_shared<FetchedTasks>(std::move(tasks));
    } catch (const std::bad_alloc&) {
        return nullptr; // their guards have rejected them
    }
}

} // namespace orizuru::detail
