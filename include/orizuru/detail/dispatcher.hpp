// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Which task a free thread gets. Free threads take turns: one of them leads, looks at the queues in
// their order and goes with what it finds; another one leads then. So nothing is fetched while no
// thread is free, and no task is handed from thread to thread. A batch is left to all of them.
//
// When all queues are empty, each one has a thread of its own that waits in Redis, as long as some
// thread is free. What two of them bring at once for one free thread is given back.

#include <orizuru/detail/queue_order.hpp>
#include <orizuru/detail/task_batch.hpp>
#include <orizuru/detail/wake.hpp>
#include <orizuru/detail/worker_queue.hpp>
#include <orizuru/error.hpp>
#include <orizuru/worker_event.hpp>
#include <orizuru/worker_options.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::detail {

class Dispatcher {
  public:
    /// The queues must be open, and outlive this.
    Dispatcher(const std::vector<std::unique_ptr<WorkerQueue>>& queues,
               std::shared_ptr<const WorkerShared> shared);
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;
    /// When no thread is in `next` any more.
    ~Dispatcher() { stop(); }

    /// The next task of the calling thread, which is free; waits until there is one. None =
    /// stopped. The thread has a batch of its own to pass in, null at first.
    std::unique_ptr<Task> next(std::shared_ptr<TaskBatch>& batch);

    /// Nothing is taken from a queue, or from any, until it is resumed.
    void pause(std::size_t queue);
    void resume(std::size_t queue);
    void quiet();
    /// Ends `next` for all, and returns when nobody takes anything from a queue any more.
    void stop();
    /// Gives back what was fetched and no thread has begun. Once, after stop().
    void give_back() noexcept;

  private:
    using Lock = std::unique_lock<std::mutex>;

    /// Of the thread that waits for a queue's next job.
    enum class Waiter {
        idle,
        waiting,   ///< in Redis: the queue is empty
        cancelled, ///< it will be idle in a moment, or bring something
        brought    ///< a task that nobody has taken yet
    };

    struct Place {
        explicit Place(WorkerQueue& source) : queue(&source) {}

        WorkerQueue* queue;
        bool paused = false;
        TimePoint not_before{}; ///< after a failure
        Waiter waiter = Waiter::idle;
        std::unique_ptr<Task> brought;
        std::stop_source cancel;
        std::condition_variable turn; ///< the waiter's
    };

    static constexpr std::chrono::milliseconds patience{10};
    static constexpr std::chrono::milliseconds longest_wait{60'000};
    static constexpr std::chrono::milliseconds failure_pause{1000};

    std::unique_ptr<Task> await_task(Lock& lock);
    std::unique_ptr<Task> lead(Lock& lock);
    std::unique_ptr<Task> look(Lock& lock);
    std::unique_ptr<Task> take(Place& place, const std::stop_token& token,
                               std::chrono::milliseconds timeout) noexcept;
    bool fetch_inside(std::size_t middleware, const WorkerQueue& queue,
                      const std::function<bool()>& fetch);
    void postpone(Place& place, std::chrono::milliseconds time) noexcept;
    void postpone_failed(Place& place, std::string_view why) noexcept;
    std::shared_ptr<TaskBatch> take_in_hand(Place& place, std::unique_ptr<Task> first) noexcept;
    [[nodiscard]] bool has_batch() const noexcept { return m_batch && !m_batch->empty(); }
    void await_news(Lock& lock);
    void start_waiting(Place& place) noexcept;
    void cancel(Place& place);
    void wait_for(Place& place);
    [[nodiscard]] bool open(const Place& place) const;
    void tell_news() noexcept {
        m_news = true;
        m_news_told.notify_one();
        m_at_rest.notify_all();
    }

    std::shared_ptr<const WorkerShared> m_shared;
    QueueOrderer m_order;

    std::mutex m_mutex; ///< guards what follows
    std::deque<Place> m_places;
    int m_free = 0; ///< threads in `next`
    int m_followers = 0;
    bool m_led = false;
    bool m_called = false; ///< a follower was, and has not looked yet
    bool m_quiet = false;
    std::atomic<bool> m_stopped{false};
    bool m_news = false;                ///< for the leader
    std::shared_ptr<TaskBatch> m_batch; ///< what came with the last task
    std::condition_variable m_turn;
    std::condition_variable m_news_told;
    std::condition_variable m_at_rest;
    std::vector<std::jthread> m_waiters;
};

inline Dispatcher::Dispatcher(const std::vector<std::unique_ptr<WorkerQueue>>& queues,
                              std::shared_ptr<const WorkerShared> shared)
    : m_shared(std::move(shared)), m_order(m_shared->options.order) {
    for (const auto& queue : queues) {
        m_places.emplace_back(*queue);
        m_order.add(queue->options().weight);
    }
    try {
        for (Place& place : m_places) {
            m_waiters.emplace_back([this, &place] { wait_for(place); });
        }
    } catch (...) {
        stop();
        throw;
    }
}

inline std::unique_ptr<Task> Dispatcher::next(std::shared_ptr<TaskBatch>& batch) {
    while (true) {
        if (batch && !m_stopped) {
            if (std::unique_ptr<Task> task = batch->take()) {
                return task;
            }
        }
        Lock lock(m_mutex);
        ++m_free;
        std::unique_ptr<Task> task = await_task(lock);
        batch = m_batch;
        --m_free;
        if (m_free == 0) {
            std::ranges::for_each(m_places, [this](Place& place) { cancel(place); });
        } else if (m_followers > 0 && !m_called) {
            // One at a time: while it wakes up, this thread may be back.
            m_called = true;
            lock.unlock();
            m_turn.notify_one();
        }
        if (task || m_stopped) {
            return task;
        }
    }
}

/// None when the thread has to look into the batch, or to end.
inline std::unique_ptr<Task> Dispatcher::await_task(Lock& lock) {
    if (m_led) {
        ++m_followers;
        m_turn.wait(lock, [this] {
            m_called = false;
            return !m_led || m_stopped;
        });
        --m_followers;
    }
    if (m_stopped || has_batch()) {
        return nullptr;
    }
    m_led = true;
    std::unique_ptr<Task> task = lead(lock);
    m_led = false;
    m_at_rest.notify_all();
    return task;
}

inline std::unique_ptr<Task> Dispatcher::lead(Lock& lock) {
    while (!m_stopped) {
        m_news = false;
        std::unique_ptr<Task> task = look(lock);
        if (task || has_batch()) {
            return task;
        }
        await_news(lock);
    }
    return nullptr;
}

/// What the first queue has that has something; none when that is a batch.
inline std::unique_ptr<Task> Dispatcher::look(Lock& lock) {
    // One that is being cancelled may bring something more urgent than what can be fetched.
    m_news_told.wait(lock, [this] {
        return m_stopped || std::ranges::none_of(m_places, [](const Place& place) {
                   return place.waiter == Waiter::cancelled;
               });
    });
    for (const std::size_t index : m_order.next()) {
        if (m_stopped) {
            break;
        }
        Place& place = m_places[index];
        if (place.brought) {
            place.waiter = Waiter::idle;
            place.turn.notify_one();
            return std::move(place.brought);
        }
        if (!open(place) || place.waiter != Waiter::idle) {
            continue;
        }
        lock.unlock();
        std::unique_ptr<Task> task = take(place, {}, std::chrono::milliseconds(0));
        std::shared_ptr<TaskBatch> batch =
            task && place.queue->in_hand() > 0 ? take_in_hand(place, std::move(task)) : nullptr;
        lock.lock();
        if (task || batch) {
            m_batch = std::move(batch);
            return task;
        }
        if (m_free > 1) {
            start_waiting(place);
        }
    }
    return nullptr;
}

/// A task and what came with it. The leader has none of them yet: it may be put to sleep when it
/// calls another thread, and acks cost the least when the oldest message is acked first.
inline std::shared_ptr<TaskBatch> Dispatcher::take_in_hand(Place& place,
                                                           std::unique_ptr<Task> first) noexcept {
    try {
        std::vector<std::unique_ptr<Task>> tasks;
        tasks.push_back(std::move(first));
        while (const std::size_t in_hand = place.queue->in_hand()) {
            if (std::unique_ptr<Task> task = take(place, {}, std::chrono::milliseconds(0))) {
                tasks.push_back(std::move(task));
            } else if (place.queue->in_hand() == in_hand) {
                break; // passed over
            }
        }
        return std::make_shared<TaskBatch>(std::move(tasks));
    } catch (const std::bad_alloc&) {
        return nullptr; // their guards have rejected them
    }
}

/// All were empty.
inline void Dispatcher::await_news(Lock& lock) {
    TimePoint again = TimePoint::max();
    for (Place& place : m_places) {
        if (open(place)) {
            start_waiting(place);
        } else if (place.not_before > Clock::now()) {
            again = std::min(again, place.not_before);
        }
    }
    const auto is_news = [this] { return m_news || m_stopped; };
    if (again == TimePoint::max()) {
        m_news_told.wait(lock, is_news);
    } else {
        m_news_told.wait_until(lock, again, is_news);
    }
}

inline bool Dispatcher::open(const Place& place) const {
    return !m_quiet && !place.paused && Clock::now() >= place.not_before;
}

/// Through the middleware.
inline std::unique_ptr<Task> Dispatcher::take(Place& place, const std::stop_token& token,
                                              std::chrono::milliseconds timeout) noexcept {
    std::unique_ptr<Task> task;
    bool asked = false;
    const auto fetch = [&] {
        asked = true;
        task = place.queue->take(token, timeout);
        return task != nullptr;
    };
    try {
        fetch_inside(0, *place.queue, std::ref(fetch)); // copied, it would need memory each time
        if (!asked) {
            postpone(place, m_shared->options.recheck);
        }
    } catch (const std::exception& error) {
        postpone_failed(place, error.what());
    } catch (...) {
        postpone_failed(place, "an exception that is no std::exception");
    }
    return task;
}

inline void Dispatcher::postpone_failed(Place& place, std::string_view why) noexcept {
    postpone(place, failure_pause);
    place.queue->tell(
        {.kind = WorkerEventKind::fetch_failed, .detail = why, .retry_in = failure_pause});
}

inline bool Dispatcher::fetch_inside(std::size_t middleware, const WorkerQueue& queue,
                                     const std::function<bool()>& fetch) {
    const auto& around = m_shared->options.fetch_middleware;
    return middleware == around.size() ? fetch() : around[middleware](queue.queue(), [&] {
        return fetch_inside(middleware + 1, queue, fetch);
    });
}

inline void Dispatcher::postpone(Place& place, std::chrono::milliseconds time) noexcept {
    const Lock lock(m_mutex);
    place.not_before = Clock::now() + time;
}

inline void Dispatcher::start_waiting(Place& place) noexcept {
    if (!open(place) || place.waiter != Waiter::idle || m_stopped) {
        return;
    }
    try {
        place.cancel = std::stop_source();
    } catch (const std::bad_alloc&) {
        place.not_before = Clock::now() + failure_pause;
        return;
    }
    place.waiter = Waiter::waiting;
    place.turn.notify_one();
}

inline void Dispatcher::cancel(Place& place) {
    if (place.waiter == Waiter::waiting) {
        place.waiter = Waiter::cancelled;
        place.cancel.request_stop();
    }
}

/// The life of a waiter.
inline void Dispatcher::wait_for(Place& place) {
    const auto is_due = [&] {
        return place.waiter == Waiter::waiting || place.waiter == Waiter::cancelled;
    };
    Lock lock(m_mutex);
    while (true) {
        place.turn.wait(lock, [&] { return m_stopped || is_due(); });
        if (!is_due()) {
            return; // stopped
        }
        const std::stop_token token = place.cancel.get_token();
        lock.unlock();
        std::unique_ptr<Task> task = take(place, token, longest_wait);
        lock.lock();
        place.brought = std::move(task);
        place.waiter = place.brought ? Waiter::brought : Waiter::idle;
        tell_news();
        const auto taken = [&] { return place.waiter != Waiter::brought; };
        if (taken() || place.turn.wait_for(lock, patience, [&] { return m_stopped || taken(); })) {
            if (taken()) {
                continue;
            }
        }
        // No thread is free for it: others may have one.
        task = std::move(place.brought);
        lock.unlock();
        task->give_back();
        task.reset();
        lock.lock();
        place.waiter = Waiter::idle;
        tell_news();
    }
}

inline void Dispatcher::pause(std::size_t queue) {
    const Lock lock(m_mutex);
    m_places[queue].paused = true;
    cancel(m_places[queue]);
}

inline void Dispatcher::resume(std::size_t queue) {
    const Lock lock(m_mutex);
    if (std::exchange(m_places[queue].paused, false)) {
        tell_news();
    }
}

inline void Dispatcher::quiet() {
    const Lock lock(m_mutex);
    m_quiet = true;
    std::ranges::for_each(m_places, [this](Place& place) { cancel(place); });
}

inline void Dispatcher::stop() {
    Lock lock(m_mutex);
    m_stopped = true;
    for (Place& place : m_places) {
        cancel(place);
        place.turn.notify_one();
    }
    m_turn.notify_all();
    m_news_told.notify_all();
    m_at_rest.wait(lock, [this] {
        return !m_led && std::ranges::all_of(m_places, [](const Place& place) {
            return place.waiter == Waiter::idle;
        });
    });
}

inline void Dispatcher::give_back() noexcept {
    // What goes back is served next: so the newest goes first.
    for (const Place& place : m_places) {
        place.queue->give_back_fetched();
    }
    if (m_batch) {
        m_batch->give_back();
    }
}

} // namespace orizuru::detail
