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

/// One thread at a time calls `take`, `end_waiting`, `take_fetched`, `in_hand`, `is_late`,
/// `has_surplus`, `holds_back`, `give_up_held_back`, `open`, `opens_at`, `open_to_fetched` and
/// `disconnect`; any thread calls the rest.
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
    /// True while Redis is late with the answer to a `take`, or has brought jobs since.
    [[nodiscard]] bool is_late() { return m_queue.is_late(); }
    /// True when jobs were fetched for threads that are not free any more.
    [[nodiscard]] bool has_surplus() const noexcept { return m_queue.has_surplus(); }
    /// True while a task awaits the answer of the queue's limit.
    [[nodiscard]] bool holds_back() const noexcept { return m_held_back != nullptr; }
    /// Returns that task, if there is one, to be requeued.
    [[nodiscard]] std::shared_ptr<Task> give_up_held_back() noexcept {
        if (m_held_back) {
            m_queue.limit()->withdraw();
        }
        return std::exchange(m_held_back, nullptr);
    }
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
    // For a limit's answer, which mostly comes within a round trip. Other queues wait meanwhile.
    static constexpr std::chrono::milliseconds answer_patience{20};

    [[nodiscard]] bool closed() const noexcept {
        if (m_paused || m_fetching_forbidden) {
            return true;
        }
        if (const QueueLimit* const limit = m_queue.limit()) {
            const auto answer = limit->answer();
            if (m_held_back) { // it has its place already
                return answer == QueueLimit::Answer::awaited;
            }
            if (answer != QueueLimit::Answer::here) {
                return true;
            }
        }
        return m_queue.full();
    }
    void withdraw() noexcept {
        if (QueueLimit* const limit = m_queue.limit()) {
            limit->withdraw();
            if (const auto task = std::exchange(m_held_back, nullptr)) {
                task->requeue({});
            }
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
    int granted(QueueLimit& limit, int free);
    std::shared_ptr<Task> take_held_back(QueueLimit& limit);
    bool fetch_inside(std::size_t middleware, const std::function<bool()>& fetch);
    void fail(std::string_view why) noexcept {
        close_for(failure_pause);
        m_queue.tell(
            {.kind = WorkerEventKind::fetch_failed, .detail = why, .retry_in = failure_pause});
    }

    FetchingQueue& m_queue;
    const WorkerOptions& m_options;
    bool m_disconnected = false;       ///< for the thread inside `take`
    std::shared_ptr<Task> m_held_back; ///< may not run yet; for the same thread
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
            if (m_queue.limit() != nullptr) {
                m_queue.limit()->end_watch();
            }
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

/// Takes as many as the limit grants. What it has not granted yet is held back: a job that a wait
/// in Redis has brought, say.
inline std::shared_ptr<Task> QueueGate::take_within(QueueLimit& limit, const std::stop_token& token,
                                                    Awaited* awaited, int free) {
    if (m_held_back) {
        return take_held_back(limit);
    }
    m_disconnected = false; // there may be something to withdraw
    std::shared_ptr<Task> task;
    if (awaited == nullptr && in_hand() == 0) {
        const int most = granted(limit, free);
        if (most == 0) {
            return nullptr;
        }
        const auto tell = at_exit([&] {
            limit.fetched((task ? 1 : 0) +
                          (m_queue.in_batches() ? 0 : static_cast<int>(in_hand())));
        });
        task = take_most(token, nullptr, free, most);
    } else {
        if (awaited != nullptr) {
            limit.begin_watch();
        }
        task = take_most(token, awaited, free, 1);
    }
    if (task && !limit.permit(*task)) {
        m_held_back = std::move(task);
        limit.ask(1, QueueLimit::Jobs::at_hand);
        limit.await(Clock::now() + answer_patience);
        return take_held_back(limit);
    }
    return task;
}

inline int QueueGate::granted(QueueLimit& limit, int free) {
    limit.fetched(0); // what was at hand is not any more
    int most = limit.granted();
    if (most == 0 && !limit.found_empty()) {
        limit.ask(m_queue.room(free), QueueLimit::Jobs::to_fetch);
        limit.await(Clock::now() + answer_patience);
        most = limit.granted();
        static_cast<void>(limit.found_empty());
    }
    return most;
}

inline std::shared_ptr<Task> QueueGate::take_held_back(QueueLimit& limit) {
    if (limit.answer() == QueueLimit::Answer::awaited) {
        return nullptr;
    }
    std::shared_ptr<Task> task = std::exchange(m_held_back, nullptr);
    if (limit.granted() > 0) {
        limit.fetched(1);
        if (limit.permit(*task)) {
            return task;
        }
    }
    limit.put_back(std::move(task));
    return nullptr;
}

inline std::shared_ptr<Task> QueueGate::end_waiting(const std::stop_token& token) noexcept {
    try {
        std::shared_ptr<Task> brought = m_queue.take(token, nullptr);
        if (QueueLimit* const limit = m_queue.limit()) {
            limit->end_watch();
            if (brought) {
                limit->put_back(std::exchange(brought, nullptr));
            }
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
