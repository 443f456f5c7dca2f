// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The work beside a worker's jobs: runs schedulers and collectors, checks the queues for pauses and
// for dead lists over their limits, on one thread with two connections; and repeats settlements
// that Redis has refused, on another thread. It reports failures and tries again. No queue depends
// on the health of another.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/worker/dispatcher.hpp>
#include <orizuru/detail/worker/parked_tasks.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/endpoint.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace orizuru::detail {

class QueueUpkeep;

/// The queues, the dispatcher and the parked tasks outlive this.
class Upkeep {
  public:
    /// Connects, and pauses the dispatcher for each queue that is paused. Throws as Connection
    /// does.
    Upkeep(const Endpoint& endpoint, const ServedQueues& queues, WorkerShared& shared,
           Dispatcher& dispatcher, ParkedTasks& parked);
    Upkeep(const Upkeep&) = delete;
    Upkeep& operator=(const Upkeep&) = delete;
    ~Upkeep();

    /// Starts the threads, once. Throws std::system_error when the process can have no more
    /// threads.
    void start();
    void request_stop() noexcept;
    /// Ends all threads. Those that still wait for Redis at the deadline give up.
    void end(TimePoint deadline) noexcept;

  private:
    template <class Action>
    void start(std::string_view what, Action action);

    Cutoff m_cutoff;
    WorkerShared& m_shared;
    ParkedTasks& m_parked;
    std::unique_ptr<QueueUpkeep> m_queues;
    std::mutex m_mutex; ///< guards the next one
    int m_alive = 0;
    std::condition_variable m_ended;
    std::vector<std::jthread> m_threads; // last: they use all of the above
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/worker/upkeep.ipp>
#endif
