// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs jobs: takes them from queues, calls their handlers on a pool of threads, retries failed jobs
// later, and shuts down as a process should. Delivery is at least once unless you choose otherwise.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/worker/job_type.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/worker/job_batch.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>
#include <orizuru/worker/worker_statistics.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

struct BatchOptions;
struct FleetLimit;
struct KeyedOptions;
template <class T>
struct Recurrence;
struct RecurringOptions;

namespace detail {
struct AddedChore;
class Signals;
class SingleJobQueue;
struct WorkerCore;
class WorkerShutdown;
} // namespace detail

/// @cond
// For a use without its header.
template <class... Write>
JobObserver
log_jobs(const Write&... /*write*/) requires(!detail::included<detail::Part::log_jobs, Write...>) {
    static_assert(detail::included<detail::Part::log_jobs, Write...>,
                  "log_jobs needs the header <orizuru/worker/job_log.hpp>");
    return {};
}
/// @endcond

/// Handles the jobs of one or several queues.
///
/// Connections: one for each queue, to wait for its jobs, and five for the worker: to fetch and
/// settle, to beat, to look after its queues, to wait for what they schedule, and, once it is
/// needed, to ask about failed jobs and to tell of progress; one more once a job is forwarded
/// (QueueOptions::forward_to), and two for each queue with a limit.
///
/// Threads: `concurrency` for the handlers, which take turns at waiting for all queues; five more,
/// which mostly wait; one for each queue with an `on_beat`; two for each queue with a JobDone,
/// which settle what has ended; one for each queue with a limit; and one when a handler has a time
/// limit.
class Worker {
  public:
    /// Does not connect yet: a process may fork after it, and each child may run its copy. Throws
    /// std::invalid_argument for an impossible option.
    explicit Worker(Endpoint endpoint, WorkerOptions options = {});
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker() = default;

    /// Registers a handler for the jobs of a queue, each a Job<T>. Call it before `run`.
    ///
    /// `handler` is called on any of the worker's threads, on several at once. When it returns, the
    /// job is acked. When it throws anything or calls JobRun::fail, the job is retried as
    /// QueueOptions::retry says; after DoNotRetry and Discard it is not. The retry and the removal
    /// are one atomic step. An exception thrown while the worker shuts down is no failure: the job
    /// is requeued at the serving end, and the attempt does not count. DoNotRetry and Discard still
    /// count then, and so does any exception once the time limit is over. A handler that merely
    /// returns at its stop_token, its work undone, has its job acked: throw to have it requeued.
    ///
    /// A job that the handler settles through the guard of its JobContext is left alone. A message
    /// that is no Job<T> goes to the dead list with the reason; a job of a kind that has no handler
    /// here fails, as a newer worker may have one.
    ///
    /// If Redis refuses a settlement, on_event hears of it, a separate thread repeats it, and
    /// nothing more is fetched from the queue until it is accepted.
    ///
    /// A handler that takes a JobDone behind its other arguments may return before its job has
    /// ended: the job is in flight then, without a thread, until JobDone is called (job_done.hpp).
    /// QueueOptions::concurrency bounds the number of those.
    ///
    /// The handler must return or throw. pthread_exit, or the cancellation of its thread, ends the
    /// process by SIGABRT, because the C library forbids catching either; the jobs that the process
    /// held are redelivered after the lease. If your handler's thread may be cancelled, disable
    /// that with pthread_setcancelstate.
    ///
    /// A child that the handler forks must end by exec or _exit. One that comes back, by a return
    /// or an exception (of an exec that failed, say), ends by _exit(70) with a line on stderr, and
    /// its parent goes on. The same holds for middleware, on_event and on_beat. In the child this
    /// library's objects that its parent made throw std::logic_error.
    ///
    /// Throws std::invalid_argument for an impossible queue name or option, an empty handler, a
    /// queue that has a handler already, and a JobDone where HandleMiddlewareScope forbids it;
    /// std::logic_error when the worker runs.
    template <class T, JobHandler<T> F>
    Worker& handle(std::string queue, F handler, QueueOptions options = {});
    /// @cond
    // For what is no handler of T. By value, so that F is here what it is above.
    template <class T, class F>
    Worker& handle(std::string_view /*queue*/, F /*handler*/, // NOLINT(performance-*)
                   const QueueOptions& /*options*/ = {}) requires(!JobHandler<F, T>) {
        static_cast<void>(detail::Refusal<T, F>());
        return *this;
    }
    /// @endcond

    /// Registers a handler for those jobs of a queue that were pushed with this kind
    /// (JobProducerOptions::kind): any number of kinds for one queue, each with a type of its own,
    /// beside at most one handler without a kind. The options of the queue are those of `serve` or
    /// of the handler without a kind, whichever there is.
    ///
    /// Throws as above, and for a kind that has a handler already or has not 1 to 100 bytes.
    template <class T, JobHandler<T> F>
    Worker& handle(std::string queue, std::string kind, F handler, KindOptions options = {});
    /// @cond
    // For what is no handler of T.
    template <class T, class F>
    Worker& handle(std::string_view /*queue*/, std::string_view /*kind*/,
                   F /*handler*/, // NOLINT(performance-*)
                   const KindOptions& /*options*/ = {}) requires(!JobHandler<F, T>) {
        static_cast<void>(detail::Refusal<T, F>());
        return *this;
    }
    /// @endcond
    /// Sets the options of a queue whose handlers all have a kind. Once, before `run`; throws as
    /// `handle` does.
    Worker& serve(std::string queue, QueueOptions options);

    /// Registers a handler for batches: handler(JobBatch<T>). A batch is handled when it has
    /// `batch.size` jobs, or `batch.time` after its first job came; earlier when there is no memory
    /// for its next job.
    ///
    /// An exception fails each job of the batch that the handler has not settled, or requeues it
    /// while the worker shuts down; a return acks it. JobRun::fail fails a single one. A batch is
    /// handled on one thread; middleware and reports see its first job. It takes the whole queue,
    /// whatever the jobs' kinds are, and there is no other handler beside it. Include
    /// <orizuru/worker/handle_batch.hpp>. Throws as `handle` does, and as next_batch does for
    /// `batch`.
    template <class T, JobBatchHandler<T> F, class = decltype(detail::can_handle_batch<T>())>
    Worker& handle_batch(std::string queue, F handler, const BatchOptions& batch,
                         QueueOptions options = {});

    /// Registers a handler for the jobs of a queue with keys (keyed.hpp): those of one key one
    /// after the other, in the order of their pushes. All else is as with `handle`, with these
    /// exceptions: successes are acked at once, one by one or in bursts (KeyedOptions), by a script
    /// that brings the key's next job; `retry.retry_queue` and Guarantee::at_most_once are refused,
    /// since the next job would not wait for this one; a job without a key goes to the dead list.
    /// Include <orizuru/keyed.hpp>. Throws as `handle` does.
    template <class T, JobHandler<T> F, class = decltype(detail::can_handle_keyed<T>())>
    Worker& handle_keyed(const std::string& queue, F handler, QueueOptions options = {});
    /// Does the same with options for the keys. Throws besides for those that cannot be.
    template <class T, JobHandler<T> F, class = decltype(detail::can_handle_keyed<T>())>
    Worker& handle_keyed(const std::string& queue, F handler, QueueOptions options,
                         const KeyedOptions& keyed);

    /// Registers a handler for the jobs of all shards of a queue, with these options for each; see
    /// <orizuru/sharded.hpp>. In QueueOrder::strict they take turns. Include
    /// <orizuru/worker/handle_shards.hpp>. Connects, to read which shards there are now: GET.
    /// Handlers of single kinds come after it. Throws as `handle` and as Connection do;
    /// std::logic_error for a queue without shards.
    template <class T, JobHandler<T> F, class = decltype(detail::can_handle_shards<T>())>
    Worker& handle_shards(const std::string& queue, F handler, const QueueOptions& options = {});

    /// Also pushes jobs that recur, as Recurring<Job<T>> does: any number of workers may, and each
    /// occurrence is pushed once. Include <orizuru/worker/recur.hpp>. The queue need not be one of
    /// this worker's, and has one such list here. It needs no further connection or thread. A
    /// failure is told as upkeep_failed and repeated. Before `run`; throws as Recurring's
    /// constructor does, but does not connect.
    template <class T, class = decltype(detail::can_recur<T>())>
    Worker& recur(std::string queue, std::vector<Recurrence<Job<T>>> recurrences,
                  const RecurringOptions& options);
    /// Does the same with the default options.
    template <class T, class = decltype(detail::can_recur<T>())>
    Worker& recur(std::string queue, std::vector<Recurrence<Job<T>>> recurrences);

    /// Limits how many of a queue's handlers run at once in all processes together, and how many of
    /// its jobs begin in a time. What has to wait stays in Redis. Include
    /// <orizuru/worker/limit.hpp>, whose page is "A limit of all processes" in workers.md.
    ///
    /// All processes that serve the queue set the same limit. With a rate, a job that begins later
    /// than 50 ms behind its permit goes back, so two round trips to Redis must be well below that;
    /// with Guarantee::at_most_once the ack comes between. The slot of a handler is free when its
    /// task has ended; those of a process that died are, once the lease of the queue is over, and
    /// not while Redis refuses writes. One thread and two connections more for each such queue.
    ///
    /// Redis: one script more for each job, or for those that several free threads fetch together;
    /// another one when it ends, unless the next is asked for just then. Who waits for a slot asks
    /// when it is woken, or once the oldest lease of a slot would be over, in 30 s at the latest;
    /// who waits for a rate, when that says. The thread that fetches waits up to 20 ms for an
    /// answer, and other queues with it.
    ///
    /// Before `run`, and behind the queue's handlers. Throws std::invalid_argument for a limit of
    /// nothing, one that cannot be, and a queue without a handler, with a prefetch over 1, or with
    /// batches or bursts beside a rate (`run` does, too, when options come later).
    template <class T = void, class = decltype(detail::can_limit<T>())>
    Worker& limit(const std::string& queue, const FleetLimit& limit);

    /// Runs until it is stopped by stop(), `token`, SIGTERM or SIGINT.
    ///
    /// Then it fetches nothing more, and handlers learn of the stop by their stop_token and have
    /// stop_timeout to end. Jobs that have not ended are requeued at the queue's serving end, and
    /// the attempt does not count. `run` returns whatever Redis does: at latest 1 s after
    /// stop_timeout, or 5 s after it when a handler or a middleware still runs. The collector
    /// redelivers jobs that could be neither settled nor requeued by then, after the lease.
    ///
    /// Returns the number of threads that have not ended, because a handler did not return or Redis
    /// did not answer; jobs in flight, which have none, are requeued and do not count. When it is
    /// not 0, end the process with std::_Exit: these threads go on and use their objects, and what
    /// they settle has no effect. Threads that only wait for Redis end in time.
    ///
    /// Signals: SIGTERM and SIGINT stop the worker; one that comes while it stops ends the process
    /// at once, and its jobs are redelivered after the lease. SIGTSTP ends fetching, as quiet()
    /// does. SIGTTIN reports to on_event what each thread does. A handler that the program had for
    /// one of these is called behind that. When `run` returns, the former
    /// actions of these four signals are back; other signals are left alone, and so is one of the
    /// four that was ignored. A child process that a handler forks has the former actions, too.
    /// If `run` throws, a SIGTERM or SIGINT that came before is raised again, unless a handler of
    /// the program's has had it.
    ///
    /// Throws std::logic_error without a queue or a handler, when it is called twice, and when
    /// another worker of the process handles the signals; for each queue as Consumer's constructor
    /// does; std::system_error when the process can have no more descriptors or threads; it names
    /// RLIMIT_NOFILE where that is too low for the queues, two descriptors each. Then you may
    /// call `run` again, unless one of its threads still waits for Redis 5 s after stop_timeout.
    /// Once it runs, it waits out any outage of Redis.
    int run(std::stop_token token = {});
    /// Does the same, for a program that does nothing else: returns once all threads have ended;
    /// when one has not, ends the process by std::_Exit(1).
    void run_and_exit(std::stop_token token = {});

    /// Ends `run`. Call it from any thread or a signal handler.
    void stop() noexcept;
    /// Ends fetching; jobs that run go on. Call it from any thread or a signal handler.
    void quiet() noexcept;

    /// The counts so far. Any thread, once all handlers are registered.
    [[nodiscard]] WorkerStatistics statistics() const;
    /// Does the same for each queue, with the times of the jobs.
    [[nodiscard]] std::vector<QueueStatistics> queue_statistics() const;
    /// The jobs that run now, those in flight behind those on threads; empty outside `run`. Any
    /// thread.
    [[nodiscard]] std::vector<RunningJob> running() const;
    /// Returns how many threads there are for jobs; 0 before `run`. Any thread.
    [[nodiscard]] std::size_t threads() const;

  private:
    enum class Mode { run, quiet, stop };

    [[nodiscard]] [[gnu::cold]] Keys checked(std::string queue) const;
    [[nodiscard]] [[gnu::cold]] detail::SingleJobQueue& queue_of(Keys keys);
    [[gnu::cold]] void check_middleware(const detail::JobHandling& handling,
                                        const std::string& queue) const;
    [[gnu::cold]] void add(std::string queue, QueueOptions options, detail::JobHandling handling);
    [[gnu::cold]] void add_shards(const std::vector<std::string>& shards,
                                  const QueueOptions& options, const detail::JobHandling& handling);
    [[gnu::cold]] void add_kind(std::string queue, std::string kind, KindOptions options,
                                detail::JobHandling handling);
    [[gnu::cold]] void add_batch(std::string queue, QueueOptions options, const BatchOptions& batch,
                                 detail::BatchedJobMaker make,
                                 std::function<void(std::span<JobRun* const>)> handler);
    [[gnu::cold]] void add_keyed(const std::string& queue, QueueOptions options,
                                 const KeyedOptions& keyed, detail::JobHandling handling);
    [[gnu::cold]] void set_limit(const std::string& name, const FleetLimit& limit);
    [[gnu::cold]] void add_chore(detail::AddedChore chore);
    int run_once(std::stop_token token);
    void await_stop(const detail::Signals* heard);
    int end(const detail::Signals* heard, detail::WorkerShutdown& ending);
    void wait(const detail::Signals* heard, detail::TimePoint deadline) const;
    void report();
    void tell(WorkerEventKind kind, std::string_view detail = {}) const noexcept;

    Endpoint m_endpoint;
    std::shared_ptr<detail::WorkerCore> m_core;
    std::atomic<Mode> m_mode{Mode::run};
    std::atomic<bool> m_started{false};
    bool m_told_start = false; ///< for the thread inside `run`
};

template <class T, JobHandler<T> F>
Worker& Worker::handle(std::string queue, F handler, QueueOptions options) {
    detail::check_handler(handler, queue);
    detail::JobHandling handling = detail::handling_by<T>(std::move(handler));
    add(std::move(queue), std::move(options), std::move(handling));
    return *this;
}

template <class T, JobHandler<T> F>
Worker& Worker::handle(std::string queue, std::string kind, F handler, KindOptions options) {
    detail::check_handler(handler, queue);
    detail::JobHandling handling = detail::handling_by<T>(std::move(handler));
    add_kind(std::move(queue), std::move(kind), std::move(options), std::move(handling));
    return *this;
}

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/worker/worker.ipp>
#endif
