// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs jobs: takes them from queues, calls their handlers in threads, has what failed come again
// later, and ends as a process should. Delivery is at least once, as a Consumer's, unless chosen
// otherwise.

#include <orizuru/detail/base/signals.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/batch_queue.hpp>
#include <orizuru/detail/worker/job_handler.hpp>
#include <orizuru/detail/worker/job_queue.hpp>
#include <orizuru/detail/worker/worker_checks.hpp>
#include <orizuru/detail/worker/worker_core.hpp>
#include <orizuru/detail/worker/worker_end.hpp>
#include <orizuru/detail/worker/worker_queue.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/jobs/batch.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/worker/job_batch.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

/// Handles the jobs of one or several queues.
///
/// Connections: one for the worker; for each queue one that fetches and settles, one that waits,
/// one that beats, from the first beat on, two for its scheduler, one for its collector, one for
/// its dead list, one for its failures and one for its progress, once there are any; two for the
/// scheduler of a retry queue that it does not serve.
/// Threads: `concurrency`; four for each queue, which mostly wait, and one for a retry queue that
/// it does not serve; five for the worker.
class Worker {
  public:
    /// Connects to nothing yet: processes that are forked then may run a copy each. Throws
    /// std::invalid_argument for an option that cannot be.
    explicit Worker(Endpoint endpoint, WorkerOptions options = {});
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker() = default;

    /// Has a queue's jobs, which are Job<T>, handled; before `run`.
    ///
    /// `handler` is called in any of the worker's threads, by several at once. When it returns, the
    /// job is acked; when it throws, whatever it throws, or calls JobRun::fail, the job is tried
    /// again as QueueOptions::retry says, unless it throws DoNotRetry, in one step with its
    /// removal; what it settles by the guard of its JobContext stays so. What is no Job<T> goes to
    /// the dead list with the reason. What Redis refuses of this is tried again, by a thread beside
    /// those of the handlers, and told; nothing more is fetched from the queue until it is
    /// accepted.
    ///
    /// The handler must return or throw. pthread_exit in it, or a cancellation of its thread, ends
    /// the process (SIGABRT), as the C library forbids that the unwinding of either is caught: the
    /// jobs that the process held come again after the lease. A thread that may be cancelled
    /// disables that by pthread_setcancelstate.
    ///
    /// Throws std::invalid_argument for a name that no queue can have, one that is handled already,
    /// and an option that cannot be; std::logic_error when the worker runs.
    template <class T, JobHandler<T> F>
    Worker& handle(std::string queue, F handler, QueueOptions options = {});

    /// The same for a handler of up to `batch.size` jobs at once, or of what has come `batch.time`
    /// after the first of them: handler(JobBatch<T>). What it throws is the failure of each job
    /// that it has not settled; JobRun::fail is that of one. A batch is handled in one thread, and
    /// for middleware and reports it is its first job. Throws as `handle`, and as next_batch for
    /// `batch`.
    template <class T, JobBatchHandler<T> F>
    Worker& handle_batch(std::string queue, F handler, const BatchOptions& batch,
                         QueueOptions options = {});

    /// Runs until it is stopped: by stop(), `token`, SIGTERM or SIGINT. Then nothing more is
    /// fetched, handlers are told by their stop_token, and have stop_timeout to end. What has not
    /// ended goes back to the queue's serving end, its attempt not counted, and `run` returns,
    /// whatever Redis does: at latest 1 s after stop_timeout when no handler and no middleware runs
    /// by then, 5 s after it when one does. What it has not got back or settled by then is the
    /// collector's after the lease.
    ///
    /// Returns how many threads have not ended, of handlers and of what waits for Redis: they go
    /// on, so that the process should end now, by std::_Exit; what they settle later has no effect.
    /// 0 = all threads have ended. Threads that only wait for Redis end in time.
    ///
    /// SIGTSTP: nothing more is fetched. SIGTTIN: tells on_event what each thread does. A SIGTERM
    /// or SIGINT while it stops ends the process at once; its jobs come back after the lease. One
    /// that came before `run` throws is raised again. The actions of these four are what they were
    /// when `run` has returned; others, and those of the four that were ignored, are left alone. In
    /// a child that a handler forks they do what they did before `run`.
    ///
    /// Throws std::logic_error without a queue, when called twice, or when another worker of the
    /// process handles its signals; as Consumer's constructor for each queue;
    /// std::system_error when the process can have no more descriptors or threads. Then `run` may
    /// be called again, unless what it had begun still waits for Redis 5 s after stop_timeout. An
    /// outage of Redis that comes later is waited out.
    int run(std::stop_token token = {});

    /// Ends `run`. Any thread, and a signal handler.
    void stop() noexcept {
        m_wish = Wish::stop;
        m_core->wake.signal();
    }
    /// Nothing more is fetched; what runs goes on. Any thread, and a signal handler.
    void quiet() noexcept {
        Wish none = Wish::run;
        m_wish.compare_exchange_strong(none, Wish::quiet);
        m_core->wake.signal();
    }

    /// Any thread.
    [[nodiscard]] WorkerStatistics statistics() const;
    /// Any thread, while `run` runs; else empty.
    [[nodiscard]] std::vector<RunningJob> running() const;

  private:
    enum class Wish { run, quiet, stop };

    [[nodiscard]] Keys checked(std::string queue, const QueueOptions& options) const;
    int live(std::stop_token token);
    void open();
    void await_wish(const detail::Signals* signals);
    int end(const detail::Signals* signals, detail::WorkerEnd& ending);
    void wait(const detail::Signals* signals, detail::TimePoint deadline) const;
    void report();

    Endpoint m_endpoint;
    std::shared_ptr<detail::WorkerCore> m_core = std::make_shared<detail::WorkerCore>();
    std::atomic<Wish> m_wish{Wish::run};
    std::atomic<bool> m_started{false};
};

inline Worker::Worker(Endpoint endpoint, WorkerOptions options) : m_endpoint(std::move(endpoint)) {
    detail::check(options);
    m_core->command_timeout = m_endpoint.command_timeout();
    m_core->shared = std::make_shared<detail::WorkerShared>(std::move(options));
}

inline Keys Worker::checked(std::string queue, const QueueOptions& options) const {
    Keys keys(std::move(queue));
    if (m_started) {
        throw std::logic_error("queue '" + keys.source() + "': the worker runs already");
    }
    if (std::ranges::any_of(m_core->queues,
                            [&](const auto& other) { return other->queue() == keys.source(); })) {
        throw std::invalid_argument("queue '" + keys.source() + "' is handled already");
    }
    detail::check(options, keys.source());
    return keys;
}

template <class T, JobHandler<T> F>
Worker& Worker::handle(std::string queue, F handler, QueueOptions options) {
    Keys keys = checked(std::move(queue), options);
    m_core->queues.push_back(std::make_shared<detail::JobQueue<T>>(
        m_core->shared, std::move(keys), std::move(options),
        [handler = std::move(handler)](JobContext<T>& context) mutable {
            detail::call_handler(handler, context);
        }));
    return *this;
}

template <class T, JobBatchHandler<T> F>
Worker& Worker::handle_batch(std::string queue, F handler, const BatchOptions& batch,
                             QueueOptions options) {
    Keys keys = checked(std::move(queue), options);
    detail::check(batch);
    m_core->queues.push_back(std::make_shared<detail::BatchQueue<T>>(
        m_core->shared, std::move(keys), std::move(options), batch, std::move(handler)));
    return *this;
}

inline int Worker::run(std::stop_token token) {
    if (m_core->queues.empty()) {
        throw std::logic_error("a worker without a queue");
    }
    if (m_started.exchange(true)) {
        throw std::logic_error("a worker runs once");
    }
    try {
        return live(std::move(token));
    } catch (...) {
        m_started = !m_core->ended();
        throw;
    }
}

inline int Worker::live(std::stop_token token) {
    m_core->wake.renew(); // the worker may have been made before a fork
    const std::stop_callback stop_by_token(std::move(token), [this] { stop(); });
    std::optional<detail::Signals> listening;
    if (m_core->shared->options.signals == SignalHandling::worker) {
        listening.emplace();
    }
    const detail::Signals* const signals = listening ? &*listening : nullptr;
    detail::WorkerEnd ending(m_core);
    try {
        if (m_wish != Wish::stop) {
            open();
        }
        await_wish(signals);
    } catch (...) {
        end(signals, ending);
        throw;
    }
    return end(signals, ending);
}

inline void Worker::open() {
    // A run before this one may have failed.
    m_core->shared->stop = std::stop_source();
    m_core->dispatcher.reset();
    for (const auto& queue : m_core->queues) {
        queue->open(m_endpoint);
    }
    m_core->dispatcher.emplace(m_core->queues, m_core->shared);
    m_core->parked.emplace(*m_core->dispatcher);
    m_core->upkeep.emplace(m_endpoint, m_core->queues, *m_core->shared, *m_core->dispatcher,
                           *m_core->parked);
    m_core->upkeep->start();
    m_core->pool.start(m_core->shared->options.concurrency,
                       std::shared_ptr<detail::Dispatcher>(m_core, &*m_core->dispatcher),
                       *m_core->parked);
}

inline void Worker::await_wish(const detail::Signals* signals) {
    while (m_wish != Wish::stop) {
        m_core->wake.clear();
        while (const auto signal = signals == nullptr ? std::nullopt : signals->next()) {
            if (*signal == SIGTTIN) {
                report();
            } else {
                *signal == SIGTSTP ? quiet() : stop();
            }
        }
        if (m_wish == Wish::quiet) {
            m_core->dispatcher->quiet();
        }
        if (m_wish != Wish::stop) {
            wait(signals, detail::TimePoint::max());
        }
    }
}

/// Returns how many threads have not ended.
inline int Worker::end(const detail::Signals* signals, detail::WorkerEnd& ending) {
    const detail::TimePoint deadline = detail::deadline_in(m_core->shared->options.stop_timeout);
    if (signals != nullptr) {
        signals->end_at_next();
    }
    ending.begin(deadline);
    const detail::TimePoint latest = deadline + detail::WorkerCore::busy_patience;
    detail::TimePoint until = deadline + detail::WorkerCore::idle_patience;
    while (!m_core->closed) {
        if (const auto now = detail::Clock::now(); now >= until) {
            if (until == latest || m_core->pool.only_settles()) {
                break;
            }
            until = latest;
        }
        m_core->wake.clear();
        while (const auto signal = signals == nullptr ? std::nullopt : signals->next()) {
            if (*signal == SIGTTIN) {
                report();
            }
        }
        if (!m_core->closed) {
            wait(signals, until);
        }
    }
    m_core->pool.leave();
    return static_cast<int>(running().size()) + (m_core->closed ? 0 : 1);
}

inline void Worker::wait(const detail::Signals* signals, detail::TimePoint deadline) const {
    detail::wait_ready(signals == nullptr ? -1 : signals->fd(), POLLIN, &m_core->wake, deadline);
}

inline void Worker::report() {
    std::string text;
    for (const RunningJob& job : running()) {
        text += (text.empty() ? "" : "\n") + to_string(job);
    }
    m_core->shared->events.tell(
        {.kind = WorkerEventKind::report, .detail = text.empty() ? "no thread is busy" : text});
}

inline WorkerStatistics Worker::statistics() const {
    const detail::WorkerCounts& counts = m_core->shared->counts;
    return {.succeeded = counts.succeeded,
            .failed = counts.failed,
            .died = counts.died,
            .expired = counts.expired,
            .settled = counts.settled,
            .given_back = counts.given_back};
}

inline std::vector<RunningJob> Worker::running() const { return m_core->running(); }

} // namespace orizuru
