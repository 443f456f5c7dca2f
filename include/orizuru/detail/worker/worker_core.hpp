// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The parts of a worker. Its threads keep them alive: a thread whose handler does not end, or that
// waits for Redis, outlives the worker.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/consumer_core.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/redis/place/queue_connections.hpp>
#include <orizuru/detail/worker/async/in_flight.hpp>
#include <orizuru/detail/worker/async/progress_writer.hpp>
#include <orizuru/detail/worker/descriptors.hpp>
#include <orizuru/detail/worker/dispatcher.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/job_queries.hpp>
#include <orizuru/detail/worker/node_links.hpp>
#include <orizuru/detail/worker/parked_tasks.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/task_source.hpp>
#include <orizuru/detail/worker/upkeep/upkeep.hpp>
#include <orizuru/detail/worker/worker_pool.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Each part uses the parts before it.
struct WorkerCore : std::enable_shared_from_this<WorkerCore> {
    std::shared_ptr<WorkerShared> shared;
    FetchingQueues queues;
    std::optional<Dispatcher> dispatcher;
    std::optional<ParkedTasks> parked;
    std::optional<Upkeep> upkeep;
    WorkerPool pool;
    WorkerPool settlers;                         ///< for jobs that were in flight
    Wake wake;                                   ///< wakes the thread inside Worker::run
    std::atomic<bool> closed{true};              ///< `close` has nothing left to do
    std::chrono::milliseconds command_timeout{}; ///< the endpoint's

    // Time after its deadline at which a shutdown ends, whatever Redis does: without, and with, a
    // handler or a middleware that still runs.
    static constexpr std::chrono::milliseconds idle_patience{1000};
    static constexpr std::chrono::milliseconds busy_patience{5000};

    /// Connects all queues and starts the threads. It may be called again after close(). Throws as
    /// Worker::run does; call close() then, too.
    void open(const Endpoint& endpoint);
    /// The job that each busy thread runs, then those in flight.
    [[nodiscard]] std::vector<RunningJob> running() const;
    /// Shuts the worker down. Handlers are told to stop and have until the deadline; then their
    /// jobs are requeued. Waits for Redis until shortly before the patience is over, or for one
    /// command_timeout when no handler runs any more; waits for stop callbacks and middleware as
    /// long as they take.
    void close(TimePoint deadline) noexcept;
    /// True when it is closed and all threads of the pool have ended.
    [[nodiscard]] bool ended() {
        return closed && pool.await_end(Clock::now()) && settlers.await_end(Clock::now());
    }

  private:
    // The part of a patience for the work that is left once nothing waits for Redis.
    static constexpr std::chrono::milliseconds spare{300};
    // For threads that have nothing left to wait for.
    static constexpr std::chrono::milliseconds last_patience{100};
    // Where handlers only post. Measured with empty ones on two CPUs: one begins 180,000 jobs a
    // second, four 240,000, ten 255,000.
    static constexpr int posting_threads = 3;
    // A handler may hold its guard, for no longer than a settlement takes.
    static constexpr std::chrono::milliseconds guard_patience{1000};

    void end_by(TimePoint deadline) noexcept {
        std::ranges::for_each(queues, [=](const auto& queue) { queue->end_by(deadline); });
    }
    template <class Action>
    void for_each_in_flight(Action action) const {
        for (const auto& queue : queues) {
            if (InFlight* const jobs = queue->in_flight()) {
                action(*jobs);
            }
        }
    }
    void requeue_in_flight(TimePoint until) noexcept {
        Fifo<GuardCore::GivenUp> messages;
        for_each_in_flight([&](InFlight& jobs) { jobs.close(until, messages); });
        GuardCore::put_back(std::move(messages));
    }
    [[nodiscard]] std::vector<std::shared_ptr<Task>> tasks() const;
    [[nodiscard]] std::vector<std::shared_ptr<Task>> tasks_of(const ServedQueue& queue) const;
    template <class Tasks, class Patience>
    static void requeue(Tasks tasks, Patience patience) noexcept;
};

inline void WorkerCore::open(const Endpoint& endpoint) {
    std::set<std::string> groups;
    for (const auto& queue : queues) {
        groups.insert(group_of(endpoint, queue->keys()));
    }
    const auto limits =
        std::ranges::count_if(queues, [](const auto& queue) { return queue->is_limited(); });
    check_descriptors(queues.size(), groups.size(), static_cast<std::size_t>(limits));
    // A run before this one may have failed.
    shared->stop = std::stop_source();
    dispatcher.reset();
    shared->queries = std::make_shared<JobQueries>(endpoint);
    shared->forwards = std::make_shared<JobQueries>(endpoint);
    shared->progress = std::make_shared<ProgressWriter>(shared->queries);
    const auto links = std::make_shared<NodeLinks>(endpoint);
    const auto news = std::make_shared<const Wake>();
    for (const auto& queue : queues) {
        queue->open(links, news);
        queue->open_limit(endpoint);
    }
    dispatcher.emplace(queues, shared, news);
    parked.emplace(*dispatcher);
    upkeep.emplace(
        endpoint, ServedQueues(queues.begin(), queues.end()), *shared, *dispatcher,
        [this](const ServedQueue& queue) { return tasks_of(queue); }, *parked);
    upkeep->start();
    std::vector<std::shared_ptr<TaskSource>> ended;
    for_each_in_flight([&](InFlight& jobs) {
        jobs.open();
        for (const InFlight::Pace pace : InFlight::paces) {
            ended.emplace_back(shared_from_this(), &jobs.source(pace));
        }
    });
    settlers.start(ended, *parked);
    const bool many =
        std::ranges::any_of(queues, [](const auto& queue) { return queue->needs_threads(); });
    const int most = shared->options.concurrency;
    const int threads = many ? most : std::min(most, posting_threads);
    pool.start(std::vector(static_cast<std::size_t>(threads),
                           std::shared_ptr<TaskSource>(shared_from_this(), &*dispatcher)),
               *parked);
}

inline std::vector<RunningJob> WorkerCore::running() const {
    std::vector<RunningJob> jobs;
    std::vector<std::shared_ptr<Task>> on_threads;
    const auto add = [&](std::optional<std::size_t> thread, const Task& task) {
        const JobRun& job = task.job();
        jobs.push_back({thread, job.queue(), job.id(), job.attempt(), job.since(), job.fraction()});
    };
    for (std::size_t thread = 0; thread < pool.threads(); ++thread) {
        if (auto task = pool.task(thread)) {
            add(thread, *task);
            on_threads.push_back(std::move(task));
        }
    }
    for_each_in_flight([&](InFlight& in_flight) {
        for (const auto& task : in_flight.running()) {
            if (std::ranges::find(on_threads, task) == on_threads.end()) { // its handler is called
                add({}, *task);
            }
        }
    });
    return jobs;
}

inline void WorkerCore::close(TimePoint deadline) noexcept {
    if (upkeep) {
        upkeep->request_stop();
    }
    if (dispatcher) {
        dispatcher->request_stop();
    }
    shared->stop.request_stop(); // calls the handlers' stop callbacks, which may take long
    if (dispatcher) {
        dispatcher->stop();
    }
    // A stop callback or a middleware may have overrun the deadline.
    const TimePoint over = std::max(deadline, Clock::now());
    end_by(over + idle_patience - spare);
    if (dispatcher) {
        dispatcher->requeue();
    }
    const bool begun = pool.await_end(deadline);
    for_each_in_flight([](InFlight& jobs) { jobs.finish(); });
    const bool ended = settlers.await_end(deadline) && begun;
    const bool idle = pool.only_settles();
    const TimePoint limit =
        idle ? std::min(over + idle_patience - spare, deadline_in(command_timeout))
             : over + busy_patience - spare;
    end_by(limit);
    // A failed job that is not put off by now is requeued.
    if (shared->queries) {
        shared->queries->cut_off();
        shared->forwards->cut_off();
    }
    if (!ended) {
        // The limit ends settlements, of which there may be many: wait for none of them.
        requeue([this] { return tasks(); },
                [](const Task& task) {
                    return task.handling() ? guard_patience : std::chrono::milliseconds(0);
                });
        requeue_in_flight(deadline_in(guard_patience));
        // A thread that was about to settle ends now; one that waits for Redis ends at the limit.
        const TimePoint last =
            (idle ? std::max(limit, Clock::now()) : Clock::now()) + last_patience;
        pool.await_end(last);
        settlers.await_end(last);
    }
    if (parked) {
        // At most one of them is being settled, and Redis may refuse that.
        requeue([this] { return parked->all(); }, [](const Task&) { return guard_patience; });
    }
    if (upkeep) {
        upkeep->end(limit);
        upkeep.reset();
    }
    const TimePoint limits_end = std::min(limit, Clock::now() + last_patience);
    std::ranges::for_each(queues, [=](const auto& queue) { queue->end_limit_by(limits_end); });
    std::ranges::for_each(queues, [](const auto& queue) { queue->close(); });
    closed = true;
    wake.signal();
}

/// The tasks that run.
inline std::vector<std::shared_ptr<Task>> WorkerCore::tasks() const {
    std::vector<std::shared_ptr<Task>> tasks;
    for (std::size_t thread = 0; thread < pool.threads(); ++thread) {
        if (auto task = pool.task(thread)) {
            tasks.push_back(std::move(task));
        }
    }
    return tasks;
}

/// Those of one queue, and its jobs in flight, each once.
inline std::vector<std::shared_ptr<Task>> WorkerCore::tasks_of(const ServedQueue& queue) const {
    std::vector<std::shared_ptr<Task>> tasks = this->tasks();
    std::erase_if(tasks, [&](const auto& task) { return task->job().queue() != queue.queue(); });
    if (InFlight* const in_flight = queue.in_flight()) {
        const auto on_threads = static_cast<std::ptrdiff_t>(tasks.size());
        for (auto& task : in_flight->running()) {
            const auto end = tasks.begin() + on_threads;
            if (std::find(tasks.begin(), end, task) == end) { // its handler is called
                tasks.push_back(std::move(task));
            }
        }
    }
    return tasks;
}

template <class Tasks, class Patience>
void WorkerCore::requeue(Tasks tasks, Patience patience) noexcept {
    std::vector<std::shared_ptr<Task>> all;
    try {
        all = tasks();
    } catch (const std::bad_alloc&) {
        return; // the collector gets them after the lease
    }
    // Each goes to the queue's front, so the newest goes first.
    std::ranges::sort(all, std::ranges::greater{},
                      [](const auto& task) { return task->job().taken_at(); });
    std::ranges::for_each(all, [=](const auto& task) { task->requeue(patience(*task)); });
}

} // namespace orizuru::detail
