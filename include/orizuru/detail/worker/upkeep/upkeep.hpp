// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The work beside a worker's jobs: runs schedulers and collectors, checks the queues for pauses and
// for dead lists over their limits: on one thread with two connections, in a Cluster on one for
// each slot, with one connection to each node. Repeats settlements that Redis has refused on
// another thread, and ends runs over their time limits on one more, if there are limits. It reports
// failures and tries again. No queue depends on the health of another.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/redis/place/node_lines.hpp>
#include <orizuru/detail/redis/place/queue_connections.hpp>
#include <orizuru/detail/worker/dispatcher.hpp>
#include <orizuru/detail/worker/parked_tasks.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/upkeep/chores.hpp>
#include <orizuru/detail/worker/upkeep/queue_upkeep.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/endpoint.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// The dispatcher and the parked tasks outlive this.
class Upkeep {
  public:
    /// Connects, and pauses the dispatcher for each queue that is paused. Throws as Connection
    /// does.
    Upkeep(const Endpoint& endpoint, ServedQueues queues, WorkerShared& shared,
           Dispatcher& dispatcher, RunningTasks running, ParkedTasks& parked);
    Upkeep(const Upkeep&) = delete;
    Upkeep& operator=(const Upkeep&) = delete;
    ~Upkeep();

    /// Starts the threads, once. Throws std::system_error when the process can have no more
    /// threads.
    void start();
    /// Time limits are looked after until end(): handlers may run on.
    void request_stop() noexcept;
    /// Ends all threads, after a last report: no job runs any more. Those that still wait for Redis
    /// at the deadline give up.
    void end(TimePoint deadline) noexcept;

  private:
    template <class Action>
    [[nodiscard]] std::jthread repeat(std::string_view what, Action action,
                                      QueueUpkeep* reporting = nullptr);
    void report_last(QueueUpkeep& queues) noexcept;

    ServedQueues m_all;
    Cutoff m_cutoff;
    WorkerShared& m_shared;
    const RunningTasks m_running;
    ParkedTasks& m_parked;
    NodeLines m_lines;
    std::deque<QueueUpkeep> m_queues; ///< one; in a Cluster, for each slot
    std::mutex m_mutex;               ///< guards the next two
    int m_alive = 0;
    bool m_jobs_ended = false;
    std::condition_variable m_ending;
    std::condition_variable m_ended;
    // Last: the threads use all of the above.
    std::vector<std::jthread> m_threads;
    std::jthread m_limiting;
};

inline Upkeep::Upkeep(const Endpoint& endpoint, ServedQueues queues, WorkerShared& shared,
                      Dispatcher& dispatcher, RunningTasks running, ParkedTasks& parked)
    : m_all(std::move(queues)), m_shared(shared), m_running(std::move(running)), m_parked(parked) {
    struct Group {
        std::string key; ///< one of its queues'
        ServedQueues queues = {};
    };
    std::map<std::string, Group> groups;
    for (const AddedChore& added : shared.added_chores) {
        groups.try_emplace(group_of(endpoint, Keys(added.queue)), Group{added.queue});
    }
    for (const auto& queue : m_all) {
        groups.try_emplace(group_of(endpoint, queue->keys()), Group{queue->queue()})
            .first->second.queues.push_back(queue);
    }
    for (auto& [name, group] : groups) {
        m_queues.emplace_back(Route::to_key(m_cutoff.guard(endpoint), group.key),
                              std::move(group.queues), shared, dispatcher, m_running, m_lines);
    }
}

inline Upkeep::~Upkeep() { end(Clock::now()); }

inline void Upkeep::start() {
    for (QueueUpkeep& queues : m_queues) {
        m_threads.push_back(repeat(
            "upkeep", [&queues](const std::stop_token& token) { queues.run(token); }, &queues));
    }
    m_threads.push_back(repeat("settling what was refused",
                               [this](const std::stop_token& token) { m_parked.run(token); }));
    if (std::ranges::any_of(m_all, [](const auto& queue) { return queue->has_time_limit(); })) {
        m_limiting = repeat("time limits", [this](const std::stop_token& token) {
            m_shared.time_limits.run(token);
        });
    }
}

/// Starts a thread that repeats `action` until it is told to stop, also when the action throws.
template <class Action>
std::jthread Upkeep::repeat(std::string_view what, Action action, QueueUpkeep* reporting) {
    const std::lock_guard lock(m_mutex); // a thread that ends waits for it
    std::jthread thread([=, this](const std::stop_token& token) {
        while (!token.stop_requested()) {
            try {
                action(token);
            } catch (const std::exception& error) {
                if (!token.stop_requested()) {
                    m_shared.events.tell_failed(what, "", error.what(), Chores::failure_pause);
                    sleep_until(deadline_in(Chores::failure_pause), token);
                }
            }
        }
        if (reporting != nullptr) {
            report_last(*reporting);
        }
        const std::lock_guard leaving(m_mutex);
        --m_alive;
        m_ended.notify_all();
    });
    ++m_alive;
    return thread;
}

inline void Upkeep::report_last(QueueUpkeep& queues) noexcept {
    std::unique_lock lock(m_mutex);
    m_ending.wait(lock, [this] { return m_jobs_ended; });
    lock.unlock();
    queues.leave();
}

inline void Upkeep::request_stop() noexcept {
    std::ranges::for_each(m_threads, [](std::jthread& thread) { thread.request_stop(); });
}

inline void Upkeep::end(TimePoint deadline) noexcept {
    request_stop();
    m_limiting.request_stop();
    {
        std::unique_lock lock(m_mutex);
        m_jobs_ended = true;
        m_ending.notify_all();
        wait_until(m_ended, lock, deadline, [this] { return m_alive == 0; });
    }
    m_cutoff.signal();
    m_threads.clear();
    m_limiting = {};
}

} // namespace orizuru::detail
