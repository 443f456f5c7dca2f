// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Gives the tasks of all queues to the free threads, which take turns: the one whose turn it is
// polls the queues and runs what it finds, and the next one takes over. The tasks of a fetch that
// returned several are shared by all, a few at a time. When no thread is free for a while, a thread
// of the dispatcher's ends the waits in Redis, so that others get what comes.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/forked_child.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/fetched_tasks.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/polling/polled_queues.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/task_source.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::detail {

class Dispatcher final : public TaskSource {
  public:
    /// The queues are open, signal `news`, and outlive the dispatcher.
    Dispatcher(const FetchingQueues& queues, std::shared_ptr<const WorkerShared> shared,
               std::shared_ptr<const Wake> news)
        : m_shared(std::move(shared)),
          m_news(std::move(news)),
          m_asks_beside(m_shared->options.fetch_middleware.empty() &&
                        std::ranges::all_of(queues, &FetchingQueue::shares_link)),
          m_queues(queues, *m_shared, m_news),
          m_watch([this] { watch(); }) {}
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;
    /// No thread is inside `next` any more.
    ~Dispatcher() override { stop(); }

    [[nodiscard]] const ForkMark& process() const noexcept override { return m_shared->process; }
    /// Null when stopped.
    inline std::shared_ptr<Task> next(Turn& turn) override;
    inline std::shared_ptr<Task> next_beside(Turn& turn) override;
    [[nodiscard]] bool ended() const noexcept override { return stopped(); }
    [[nodiscard]] std::shared_ptr<Task> next_at_hand(const Turn& turn) const noexcept override {
        return turn.shared && !stopped() ? turn.shared->take() : nullptr;
    }

    /// Stops taking tasks from the queue until resume().
    void pause(const std::string& queue) {
        m_queues.gate(queue).pause();
        m_news->signal();
    }
    void resume(const std::string& queue) {
        m_queues.gate(queue).resume();
        m_news->signal();
    }
    /// Stops fetching from the queue until allow_fetching(). Tasks that were fetched go on.
    void forbid_fetching(const std::string& queue) {
        m_queues.gate(queue).forbid_fetching();
        m_news->signal();
    }
    void allow_fetching(const std::string& queue) {
        m_queues.gate(queue).allow_fetching();
        m_news->signal();
    }
    /// Stops taking tasks from any queue, for good.
    void quiet() {
        m_queues.quiet();
        m_news->signal();
    }
    /// Ends `next` for all threads.
    void request_stop();
    /// Does the same, and returns when no thread takes from a queue any more.
    void stop();
    /// Requeues all tasks that were fetched and that no thread has begun. Once, after stop().
    void requeue() noexcept;

  private:
    using Lock = std::unique_lock<std::mutex>;
    enum class Asking : std::uint8_t { once, until_found };

    // Most jobs take less time.
    static constexpr std::chrono::milliseconds busy_patience{20};

    template <class Action>
    void lead(Lock& lock, Action action);
    std::shared_ptr<Task> ask(Turn& turn, Asking asking);
    std::shared_ptr<Task> take_turn(Lock& lock, Asking asking);
    PolledQueues::Found find(Asking asking);
    void watch();
    void end_waiting(Lock& lock);
    [[nodiscard]] bool stopped() const noexcept { return m_token.stop_requested(); }
    [[nodiscard]] bool has_fetched() const noexcept { return m_fetched && !m_fetched->empty(); }

    std::shared_ptr<const WorkerShared> m_shared;
    std::shared_ptr<const Wake> m_news; ///< ends the wait of the thread whose turn it is
    /// Replies come in the order of the requests, and nothing else is waited for.
    const bool m_asks_beside;
    std::stop_source m_stop;
    const std::stop_token m_token = m_stop.get_token(); // copying it counts its owners
    PolledQueues m_queues;                              ///< for the thread whose turn it is
    std::atomic<int> m_free{0}; ///< threads inside `next`; changed under the lock

    std::mutex m_mutex; ///< guards what follows
    bool m_led = false; ///< it is the turn of one
    int m_followers = 0;
    bool m_called = false;                   ///< a follower was called and has not woken up yet
    std::shared_ptr<FetchedTasks> m_fetched; ///< for all threads
    std::condition_variable m_turn;
    std::condition_variable m_at_rest;
    std::condition_variable m_busy;
    std::jthread m_watch; // last: it uses all of the above
};

inline std::shared_ptr<Task> Dispatcher::next(Turn& turn) {
    while (true) {
        if (std::shared_ptr<Task> task = next_at_hand(turn)) {
            return task;
        }
        std::shared_ptr<Task> task = ask(turn, Asking::until_found);
        if (task || stopped()) {
            return task;
        }
    }
}

inline std::shared_ptr<Task> Dispatcher::next_beside(Turn& turn) {
    const bool at_hand = turn.shared && !turn.shared->empty();
    return m_asks_beside && !at_hand ? ask(turn, Asking::once) : nullptr;
}

/// Null when the thread has to look into the shared tasks, or to end; with Asking::once also when
/// there is no task, or it is the turn of another thread.
inline std::shared_ptr<Task> Dispatcher::ask(Turn& turn, Asking asking) {
    turn.now = TimePoint();
    Lock lock(m_mutex);
    // Stopped queues are left to the thread that requeues what they hold.
    if (stopped() || (asking == Asking::once && (m_led || m_queues.any_in_hand()))) {
        return nullptr;
    }
    ++m_free;
    std::shared_ptr<Task> task = take_turn(lock, asking);
    turn.shared = m_fetched;
    --m_free;
    if (m_free == 0 && !m_led && !stopped() && m_queues.any_waiting()) {
        m_busy.notify_one();
    } else if (m_followers > 0 && !m_called) {
        // Call one at a time: this thread may be back before the other one has woken up.
        m_called = true;
        lock.unlock();
        m_turn.notify_one();
    }
    return task;
}

inline std::shared_ptr<Task> Dispatcher::take_turn(Lock& lock, Asking asking) {
    if (m_led) {
        ++m_followers;
        m_turn.wait(lock, [this] {
            m_called = false;
            return !m_led || stopped();
        });
        --m_followers;
    }
    if (stopped() || has_fetched()) {
        return nullptr;
    }
    PolledQueues::Found found;
    lead(lock, [&] { found = find(asking); });
    if (found.several) {
        m_fetched = std::move(found.several);
    }
    return std::move(found.task);
}

/// Runs `action` without the lock, as the one thread that uses the queues.
template <class Action>
void Dispatcher::lead(Lock& lock, Action action) {
    m_led = true;
    const auto resign = at_exit([this] {
        m_led = false;
        m_at_rest.notify_all();
    });
    const Unlocked open(lock);
    action();
}

inline PolledQueues::Found Dispatcher::find(Asking asking) {
    const EndOfForks end(process()); // such as one of a Codec
    while (!stopped()) {
        auto found = m_queues.find(m_token, m_free);
        if (found || asking == Asking::once) {
            return found;
        }
        if (!stopped()) {
            m_queues.await();
        }
    }
    return {};
}

/// Ends the waits when no thread was free for a while.
inline void Dispatcher::watch() {
    Lock lock(m_mutex);
    while (!stopped()) {
        m_busy.wait(lock, [this] {
            return stopped() || (m_free == 0 && !m_led && m_queues.any_waiting());
        });
        if (!m_busy.wait_for(lock, busy_patience, [this] { return stopped() || m_free > 0; })) {
            end_waiting(lock);
        }
    }
}

/// Other workers may have free threads for what the waits bring.
inline void Dispatcher::end_waiting(Lock& lock) {
    std::vector<std::shared_ptr<Task>> brought;
    lead(lock, [&] {
        try {
            brought = m_queues.end_waiting(m_token, m_free);
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
            // The next try comes after busy_patience.
        }
    });
    m_turn.notify_one();
    const Unlocked open(lock);
    while (!brought.empty()) {
        brought.back()->requeue({});
        brought.pop_back();
    }
}

inline void Dispatcher::request_stop() {
    const Lock lock(m_mutex);
    m_stop.request_stop();
    m_news->signal();
    m_turn.notify_all();
    m_busy.notify_all();
}

inline void Dispatcher::stop() {
    request_stop();
    Lock lock(m_mutex);
    m_at_rest.wait(lock, [this] { return !m_led; });
}

inline void Dispatcher::requeue() noexcept {
    // Requeued tasks are served next, so the newest goes first.
    m_queues.requeue();
    if (m_fetched) {
        m_fetched->requeue();
    }
}

} // namespace orizuru::detail
