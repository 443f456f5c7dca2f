// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The work beside a worker's jobs: runs schedulers and collectors, repeats settlements that Redis
// has refused, and checks each queue at intervals for a pause and for a dead list over its limits.
// It reports failures and tries again. No queue depends on the health of another.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/worker/dead_list_trimming.hpp>
#include <orizuru/detail/worker/dispatcher.hpp>
#include <orizuru/detail/worker/parked_tasks.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// The queues, the dispatcher and the parked tasks outlive this.
class Upkeep {
  public:
    /// Connects, and pauses the dispatcher for each queue that is paused. Throws as Connection
    /// does.
    Upkeep(Endpoint endpoint, const ServedQueues& queues, WorkerShared& shared,
           Dispatcher& dispatcher, ParkedTasks& parked)
        : m_endpoint(m_cutoff.guard(std::move(endpoint))),
          m_queues(queues),
          m_shared(shared),
          m_dispatcher(dispatcher),
          m_parked(parked),
          m_connection(m_endpoint) {
        check_pauses();
    }
    Upkeep(const Upkeep&) = delete;
    Upkeep& operator=(const Upkeep&) = delete;
    ~Upkeep() { end(Clock::now()); }

    /// Starts the threads, once. Throws std::system_error when the process can have no more
    /// threads.
    void start() {
        start("watching the queues", "", [this](const std::stop_token& token) { watch(token); });
        start("trimming dead lists", "",
              [this](const std::stop_token& token) { trim_dead_lists(token); });
        start("settling what was refused", "",
              [this](const std::stop_token& token) { m_parked.run(token); });
        std::set<std::string> scheduled;
        for (const auto& queue : m_queues) {
            scheduled.insert({queue->queue(), queue->options().retry.retry_queue});
            collect(*queue);
        }
        scheduled.erase("");
        for (const std::string& queue : scheduled) {
            schedule(queue);
        }
    }
    void request_stop() noexcept {
        std::ranges::for_each(m_threads, [](std::jthread& thread) { thread.request_stop(); });
    }
    /// Ends all threads. Those that still wait for Redis at the deadline give up.
    void end(TimePoint deadline) noexcept {
        request_stop();
        {
            std::unique_lock lock(m_mutex);
            m_ended.wait_until(lock, deadline, [this] { return m_alive == 0; });
        }
        m_cutoff.signal();
        m_threads.clear();
    }

  private:
    static constexpr std::chrono::milliseconds failure_pause{5000};

    template <class Action>
    void start(std::string_view what, const std::string& queue, Action action);
    void tell_failed(std::string_view what, std::string_view queue,
                     std::string_view why) const noexcept;
    void schedule(const std::string& queue);
    void collect(ServedQueue& queue);
    void watch(const std::stop_token& token);
    void check_pauses();
    void trim_dead_lists(const std::stop_token& token) const;

    Cutoff m_cutoff;
    Endpoint m_endpoint;
    const ServedQueues& m_queues;
    WorkerShared& m_shared;
    Dispatcher& m_dispatcher;
    ParkedTasks& m_parked;
    Connection m_connection;
    std::mutex m_mutex; ///< guards the next one
    int m_alive = 0;
    std::condition_variable m_ended;
    std::vector<std::jthread> m_threads; // last: they use all of the above
};

/// Starts a thread that repeats `action` until it is told to stop, also when the action throws.
template <class Action>
void Upkeep::start(std::string_view what, const std::string& queue, Action action) {
    const std::lock_guard lock(m_mutex); // a thread that ends waits for it
    m_threads.emplace_back([this, what, queue, action](const std::stop_token& token) {
        while (!token.stop_requested()) {
            try {
                action(token);
            } catch (const std::exception& error) {
                if (!token.stop_requested()) {
                    tell_failed(what, queue, error.what());
                    sleep_until(deadline_in(failure_pause), token);
                }
            }
        }
        const std::lock_guard leaving(m_mutex);
        --m_alive;
        m_ended.notify_all();
    });
    ++m_alive;
}

inline void Upkeep::tell_failed(std::string_view what, std::string_view queue,
                                std::string_view why) const noexcept {
    WorkerEvent event{.kind = WorkerEventKind::upkeep_failed,
                      .queue = queue,
                      .detail = why,
                      .retry_in = failure_pause};
    try {
        const std::string detail = std::string(what) + ": " + std::string(why);
        event.detail = detail;
        m_shared.events.tell(event);
    } catch (const std::bad_alloc&) {
        m_shared.events.tell(event);
    }
}

inline void Upkeep::schedule(const std::string& queue) {
    if (m_shared.options.scheduler) {
        start("scheduling", queue, [this, queue](const std::stop_token& token) {
            Scheduler(m_endpoint, queue, *m_shared.options.scheduler).run(token);
        });
    }
}

inline void Upkeep::collect(ServedQueue& queue) {
    if (m_shared.options.collect_interval) {
        // The collector survives a failure: a new one would know neither that its connection
        // replaces another one nor that it leaves the passes to others.
        const auto collector = std::make_shared<std::optional<GarbageCollector>>();
        start("collecting", queue.queue(), [this, &queue, collector](const std::stop_token& token) {
            if (!*collector) {
                collector->emplace(
                    m_endpoint, queue.queue(),
                    GarbageCollectorOptions{
                        .max_recoveries = queue.options().max_recoveries,
                        .dead_limit = queue.options().dead.most,
                        .on_event = [&queue](const Event& event) { queue.tell(event); },
                        .blamed = queue.most_at_once()});
            }
            (*collector)->run(token, *m_shared.options.collect_interval);
        });
    }
}

inline void Upkeep::watch(const std::stop_token& token) {
    while (!token.stop_requested()) {
        check_pauses();
        sleep_until(deadline_in(m_shared.options.recheck), token);
    }
}

inline void Upkeep::check_pauses() {
    for (const auto& queue : m_queues) {
        const std::string key = queue->keys().paused();
        const Reply reply = m_connection.command(key, "EXISTS", key);
        m_connection.require(reply, Reply::Type::integer, "EXISTS");
        reply.integer != 0 ? m_dispatcher.pause(queue->queue())
                           : m_dispatcher.resume(queue->queue());
    }
}

inline void Upkeep::trim_dead_lists(const std::stop_token& token) const {
    std::vector<DeadListTrimming> trimmings;
    for (const auto& queue : m_queues) {
        trimmings.emplace_back(*queue);
    }
    while (!token.stop_requested()) {
        for (DeadListTrimming& trimming : trimmings) {
            if (token.stop_requested()) {
                return;
            }
            try {
                trimming.trim(m_endpoint, failure_pause);
            } catch (const std::exception& error) {
                tell_failed("trimming the dead list", trimming.queue().queue(), error.what());
            }
        }
        sleep_until(deadline_in(m_shared.options.recheck), token);
    }
}

} // namespace orizuru::detail
