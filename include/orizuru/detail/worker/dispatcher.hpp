// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Which task a free thread gets. Free threads take turns: one of them leads, looks at the queues in
// their order and goes with what it finds; another one leads then. So nothing is fetched while no
// thread is free, and no task is handed from thread to thread. A batch is left to all of them.
//
// When all queues are empty, each one has a thread of its own that waits in Redis, as long as some
// thread is free and a moment longer: it costs several commands to end a wait and begin it again.
// What they bring and no thread is free for is given back.

#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/queue_order.hpp>
#include <orizuru/detail/worker/queue_source.hpp>
#include <orizuru/detail/worker/queue_waiter.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/task_batch.hpp>
#include <orizuru/detail/worker/worker_queue.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace orizuru::detail {

class Dispatcher {
  public:
    /// The queues must be open, and outlive this.
    Dispatcher(const WorkerQueues& queues, std::shared_ptr<const WorkerShared> shared);
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;
    /// When no thread is in `next` any more.
    ~Dispatcher() { stop(); }

    /// The next task of the calling thread, which is free; waits until there is one. None =
    /// stopped. The thread has a batch of its own to pass in, null at first.
    std::shared_ptr<Task> next(std::shared_ptr<TaskBatch>& batch);

    /// Nothing is taken from a queue until it is resumed.
    void pause(const std::string& queue);
    void resume(const std::string& queue);
    /// Nothing more is fetched from a queue until it is served again; what was goes on.
    void hold_up(const std::string& queue);
    void serve_again(const std::string& queue);
    /// Nothing is taken from any queue any more.
    void quiet();
    /// Ends `next` for all.
    void request_stop();
    /// The same, and returns when nobody takes anything from a queue any more.
    void stop();
    /// Gives back what was fetched and no thread has begun. Once, after stop().
    void give_back() noexcept;

  private:
    using Lock = std::unique_lock<std::mutex>;

    // Most jobs take less.
    static constexpr std::chrono::milliseconds busy_patience{20};

    struct Place {
        Place(WorkerQueue& queue, Dispatcher& dispatcher)
            : source(queue, dispatcher.m_shared->options),
              waiter(source, dispatcher.m_mutex, [&dispatcher] { dispatcher.tell_news(); }) {}

        QueueSource source;
        QueueWaiter waiter;
    };

    std::shared_ptr<Task> await_task(Lock& lock);
    std::shared_ptr<Task> lead(Lock& lock);
    std::shared_ptr<Task> look(Lock& lock);
    std::shared_ptr<Task> take(Lock& lock, Place& place);
    void await_news(Lock& lock);
    void start_waiting(Place& place) {
        if (!m_quiet && !m_stopped) {
            place.waiter.start();
        }
    }
    Place& place_of(const std::string& queue) {
        return *std::ranges::find(m_places, queue,
                                  [](const Place& place) { return place.source.queue(); });
    }
    void cancel_waiting() {
        std::ranges::for_each(m_places, [](Place& place) { place.waiter.cancel(); });
    }
    [[nodiscard]] bool some_wait() const {
        return std::ranges::any_of(m_places,
                                   [](const Place& place) { return !place.waiter.idle(); });
    }
    void watch();
    [[nodiscard]] bool has_batch() const noexcept { return m_batch && !m_batch->empty(); }
    void tell_news() noexcept {
        m_news = true;
        m_news_told.notify_one();
        m_at_rest.notify_all();
    }

    std::shared_ptr<const WorkerShared> m_shared;
    QueueOrderer m_order;

    std::mutex m_mutex; ///< guards what follows
    int m_free = 0;     ///< threads in `next`
    int m_followers = 0;
    bool m_led = false;
    bool m_called = false; ///< a follower was, and has not looked yet
    bool m_quiet = false;
    std::atomic<bool> m_stopped{false};
    bool m_news = false;                ///< for the leader
    std::shared_ptr<TaskBatch> m_batch; ///< for all
    std::condition_variable m_turn;
    std::condition_variable m_news_told;
    std::condition_variable m_at_rest;
    std::condition_variable m_busy;
    std::deque<Place> m_places; // behind all that their threads use
    std::jthread m_watch;
};

inline Dispatcher::Dispatcher(const WorkerQueues& queues,
                              std::shared_ptr<const WorkerShared> shared)
    : m_shared(std::move(shared)), m_order(m_shared->options.order) {
    try {
        for (const auto& queue : queues) {
            m_order.add(queue->options().weight);
            m_places.emplace_back(*queue, *this);
        }
        m_watch = std::jthread([this] { watch(); });
    } catch (...) {
        stop();
        throw;
    }
}

inline std::shared_ptr<Task> Dispatcher::next(std::shared_ptr<TaskBatch>& batch) {
    while (true) {
        if (batch && !m_stopped) {
            if (std::shared_ptr<Task> task = batch->take()) {
                return task;
            }
        }
        Lock lock(m_mutex);
        ++m_free;
        std::shared_ptr<Task> task = await_task(lock);
        batch = m_batch;
        --m_free;
        if (m_free == 0 && some_wait()) {
            m_busy.notify_one();
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
inline std::shared_ptr<Task> Dispatcher::await_task(Lock& lock) {
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
    std::shared_ptr<Task> task = lead(lock);
    m_led = false;
    m_at_rest.notify_all();
    return task;
}

inline std::shared_ptr<Task> Dispatcher::lead(Lock& lock) {
    while (!m_stopped) {
        m_news = false;
        std::shared_ptr<Task> task = look(lock);
        if (task || has_batch()) {
            return task;
        }
        await_news(lock);
    }
    return nullptr;
}

/// What the first queue has that has something; none when that is a batch.
inline std::shared_ptr<Task> Dispatcher::look(Lock& lock) {
    // One that is about to leave may bring something more urgent than what can be fetched.
    m_news_told.wait(lock, [this] {
        return m_stopped || std::ranges::none_of(m_places, [](const Place& place) {
                   return place.waiter.leaving();
               });
    });
    for (const std::size_t index : m_order.next()) {
        Place& place = m_places[index];
        if (m_stopped) {
            break;
        }
        if (m_quiet || place.source.paused()) {
            // What a waiter brings all the same it gives back.
            if (place.waiter.idle() && !place.source.down()) {
                lock.unlock();
                place.source.put_down();
                lock.lock();
            }
            continue;
        }
        if (std::shared_ptr<Task> task = place.waiter.take()) {
            return task;
        }
        // Where somebody waits there is nothing.
        if (!place.waiter.idle() || !place.source.open()) {
            continue;
        }
        std::shared_ptr<Task> task = take(lock, place);
        if (task || has_batch()) {
            return task;
        }
        if (m_free > 1) {
            start_waiting(place);
        }
    }
    return nullptr;
}

/// The leader takes no task of a batch yet: it may be put to sleep when it calls another thread,
/// and acks cost the least when the oldest message is acked first.
inline std::shared_ptr<Task> Dispatcher::take(Lock& lock, Place& place) {
    const int free = m_free;
    lock.unlock();
    std::shared_ptr<Task> task = place.source.take({}, std::chrono::milliseconds(0), free);
    std::shared_ptr<TaskBatch> batch = task ? place.source.take_in_hand(task) : nullptr;
    lock.lock();
    m_batch = std::move(batch);
    return task;
}

/// All were empty.
inline void Dispatcher::await_news(Lock& lock) {
    TimePoint opens_at = TimePoint::max();
    for (Place& place : m_places) {
        start_waiting(place);
        opens_at = std::min(opens_at, place.source.opens_at());
    }
    const auto is_news = [this] { return m_news || m_stopped; };
    if (opens_at == TimePoint::max()) {
        m_news_told.wait(lock, is_news);
    } else {
        m_news_told.wait_until(lock, opens_at, is_news);
    }
}

/// Ends the waiting when no thread was free for a while.
inline void Dispatcher::watch() {
    Lock lock(m_mutex);
    while (!m_stopped) {
        m_busy.wait(lock, [this] { return m_stopped || (m_free == 0 && some_wait()); });
        if (!m_busy.wait_for(lock, busy_patience, [this] { return m_stopped || m_free > 0; })) {
            cancel_waiting();
            // Until they are gone there is nothing more to do here.
            m_at_rest.wait(lock, [this] { return m_stopped || m_free > 0 || !some_wait(); });
        }
    }
}

inline void Dispatcher::pause(const std::string& queue) {
    const Lock lock(m_mutex);
    Place& place = place_of(queue);
    if (!place.source.paused()) {
        place.source.pause();
        place.waiter.cancel();
        tell_news();
    }
}

inline void Dispatcher::resume(const std::string& queue) {
    const Lock lock(m_mutex);
    if (place_of(queue).source.resume()) {
        tell_news();
    }
}

inline void Dispatcher::hold_up(const std::string& queue) {
    const Lock lock(m_mutex);
    Place& place = place_of(queue);
    place.source.hold_up();
    place.waiter.cancel();
}

inline void Dispatcher::serve_again(const std::string& queue) {
    const Lock lock(m_mutex);
    place_of(queue).source.serve_again();
    tell_news();
}

inline void Dispatcher::quiet() {
    const Lock lock(m_mutex);
    m_quiet = true;
    cancel_waiting();
    tell_news();
}

inline void Dispatcher::request_stop() {
    const Lock lock(m_mutex);
    m_stopped = true;
    std::ranges::for_each(m_places, [](Place& place) { place.waiter.stop(); });
    m_turn.notify_all();
    m_news_told.notify_all();
    m_busy.notify_all();
    m_at_rest.notify_all();
}

inline void Dispatcher::stop() {
    request_stop();
    Lock lock(m_mutex);
    m_at_rest.wait(lock, [this] {
        return !m_led && std::ranges::all_of(
                             m_places, [](const Place& place) { return place.waiter.idle(); });
    });
}

inline void Dispatcher::give_back() noexcept {
    // What goes back is served next: so the newest goes first.
    std::ranges::for_each(m_places, [](Place& place) { place.source.give_back(); });
    if (m_batch) {
        m_batch->give_back();
    }
}

} // namespace orizuru::detail
