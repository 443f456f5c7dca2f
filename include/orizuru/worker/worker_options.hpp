// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The options of a Worker and of its queues.

#include <orizuru/consumer_options.hpp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/scheduler_options.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/job_observer.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru {

/// The order in which a free thread polls the queues.
enum class QueueOrder {
    strict,   ///< as you gave them: a queue is served only while all queues before it are empty
    weighted, ///< drawn each time; a weight of 3 precedes a weight of 1 three times as often
    random    ///< drawn each time, with equal chances
};

/// Guarantee for a job when the process crashes during its handler.
enum class Guarantee {
    at_least_once, ///< acked after the handler: a crash repeats the job
    at_most_once   ///< acked before the handler: a crash loses the job, and a failed job is not
                   ///< retried. A batch is lost when one of its acks came too late, because
                   ///< Redis does not say which one
};

/// Chooses who handles SIGTERM, SIGINT, SIGTSTP and SIGTTIN while a Worker runs.
enum class SignalHandling {
    worker, ///< the Worker: stop, stop, quiet, report
    none    ///< you do: it leaves them alone
};

/// Runs around each call of a handler, the first one outermost; on any thread, on several at once.
///
/// The job fails when the middleware throws, as when the handler does, and when it returns without
/// having called `next()`. If you know the job's type, `job.payload<T>()` is its payload. To skip
/// the handler, settle the job through its guard, which `dynamic_cast<JobContext<T>&>(job)` has.
///
/// A handler that takes a JobDone has mostly not ended when it returns: middleware does not run
/// around it. See HandleMiddlewareScope; a JobObserver hears of every run.
using HandleMiddleware = std::function<void(JobRun& job, const std::function<void()>& next)>;

/// The handlers that HandleMiddleware is meant for.
enum class HandleMiddlewareScope {
    all_handlers,     ///< where there is some, Worker::handle refuses a handler with a JobDone
    blocking_handlers ///< it does not run around a handler with a JobDone
};

/// Runs around each fetch from a queue, the first one outermost; on any thread, on one at a time.
///
/// Return the result of `fetch()`: whether there was a job. It does not wait for one: it is called
/// again when there may be one. To pass the queue over for `WorkerOptions::recheck`, do not call
/// it; a job that has come meanwhile is requeued. While a middleware does not return, the worker
/// cannot stop, and nothing may be fetched from any queue.
using FetchMiddleware =
    std::function<bool(std::string_view queue, const std::function<bool()>& fetch)>;

/// The options of one queue of a Worker.
struct QueueOptions {
    /// For QueueOrder::weighted; 1 to 1,000,000.
    int weight = 1;
    /// The most of its jobs or batches that run at once in this process, 1 to 10,000; empty: as
    /// many as there are threads. Jobs of a handler with a JobDone run until it is called: of them
    /// there may be more than threads, at about 3 KB each besides what they hold. With 1, jobs run
    /// in the order of the queue, each after the one before has ended; those that fail come again
    /// later.
    std::optional<int> concurrency = {};
    /// The most bytes of payloads of its jobs in flight (JobDone), 1 or more: beyond that no more
    /// begin, whatever `concurrency` allows; one always may. How large the next ones are is guessed
    /// by those in flight.
    std::int64_t max_bytes_in_flight = std::int64_t{256} << 20;
    /// Decides if and when a failed job is retried. A job fails, too, when there is no memory to
    /// decode its payload; as no handler has begun then, it is retried with either guarantee.
    RetryPolicy retry = {};
    /// Time a handler may run, 1 ms to 24 h; empty: as long as it likes. When the time is over, its
    /// stop_token has a stop requested; nothing is killed. The run counts as failed once it ends,
    /// however it ends, also while the worker shuts down.
    std::optional<std::chrono::milliseconds> time_limit = {};
    /// Time from its first push after which a job without an expires_at of its own expires, 1 ms or
    /// more; a delay of the push counts. Empty: never. The worker goes by Redis' clock, for which
    /// it asks once in each connection: the host's may be wrong, and may be set meanwhile.
    std::optional<std::chrono::milliseconds> expires_after = {};
    /// Chooses if a crash repeats or loses the jobs that run.
    Guarantee guarantee = Guarantee::at_least_once;
    /// Time the worker may be unheard before its jobs go to others; 100 ms to 24 h.
    std::chrono::milliseconds lease = std::chrono::seconds(30);
    /// With 1, a fetch takes one job, or one batch, for each free thread, and none while no thread
    /// is free; if all handlers of the queue take a JobDone, as many as may be in flight beside
    /// those that are. Above 1, a fetch takes up to this many jobs, and up to twice as many are
    /// held. That is faster for short jobs, but held jobs wait for a thread of this process even
    /// when another process has a free one. From the second fetch on it takes about 512 KiB at
    /// most, to go by the size of the jobs before. Jobs of more than 64 KiB on average come one by
    /// one, by LMOVE on a connection of the queue's own: other queues' settlements do not wait for
    /// them.
    int prefetch = 1;
    /// A thread asks for its next job before it awaits an immediate ack: both take one round trip.
    /// In a Cluster, with a fetch_middleware and while it has fetched jobs, it awaits the ack
    /// first. Deferred acks are faster still for short jobs. After a crash more jobs run again, and
    /// the crash is counted for jobs that ended shortly before it, not for those that it
    /// interrupted. The ack of a job that waited apart is immediate. It has no effect with
    /// Guarantee::at_most_once, where each ack is awaited before the handler, nor for batches,
    /// whose acks go to Redis together in one round trip. Immediate acks of jobs that end by
    /// JobDone are gathered for up to 4 ms, and go to Redis together.
    AckMode ack = AckMode::immediate;
    /// Larger messages go to the dead list undecoded. In bytes, with the envelope, up to 512 MiB.
    std::int64_t max_payload = std::int64_t{16} << 20;
    /// Number of deaths of workers that a job survives; the next one sends it to the dead list.
    /// Each death counts as an attempt, added when an attempt fails. A job that always crashes its
    /// worker never fails, so this bounds it, and not `retry.max_attempts`. A dead worker's oldest
    /// jobs are blamed, as many as it runs at once: those that it ran, behind those that ended and
    /// whose settlement Redis had refused so far. All of them then wait apart: with n threads, a
    /// worker holds at most n^(1 - c/3) such jobs at a time (n is the queue's concurrency where
    /// that is more: JobDone), where the one blamed most often was
    /// blamed c times. So those that a killer takes along are not buried with it.
    int max_recoveries = 3;
    /// Limits of the dead list: the number of entries, and their age.
    DeadLimits dead = {};
    /// Called after each beat, three times in each lease, on a thread of the queue's own, as
    /// ConsumerOptions::on_beat. It can renew claims of the handlers: `[&once] { once.renew(); }`
    /// (once.hpp).
    std::function<void()> on_beat = {};
    /// Queues of other hash tags to which this worker forwards the job that follows a group of this
    /// queue (jobs/group.hpp). Its user needs the right to LPUSH there. A job that names any other
    /// queue goes to the dead list: everybody who pushes to this queue can write such a job.
    std::vector<std::string> forward_to = {};
};

/// The options of one kind of jobs; where one is empty, that of the queue holds.
struct KindOptions {
    std::optional<RetryPolicy> retry = {};                       ///< as QueueOptions::retry
    std::optional<std::chrono::milliseconds> time_limit = {};    ///< as QueueOptions::time_limit
    std::optional<std::chrono::milliseconds> expires_after = {}; ///< as QueueOptions::expires_after
};

/// Options of a Worker.
struct WorkerOptions {
    /// A label in the consumers' ids, for people: 1 to 100 of A-Z a-z 0-9 _ . - Any but the default
    /// also names its connections, as ConsumerOptions::name does.
    std::string name = "worker";
    /// The most jobs or batches that run at once, each on a thread: 1 to 10,000. One with a JobDone
    /// needs a thread only until its handler has returned; where all handlers are coroutines
    /// (orizuru::on), three threads begin them all.
    int concurrency = 10;
    /// Chooses the queue that a free thread looks at first.
    QueueOrder order = QueueOrder::strict;
    /// Time a stop waits for handlers before their jobs are requeued; 0 to 24 h. When Redis does
    /// not answer, the stop ends at latest 1 s later, or 5 s later with handlers that have not
    /// ended.
    std::chrono::milliseconds stop_timeout = std::chrono::seconds(25);
    /// Chooses if `run` takes over SIGTERM, SIGINT, SIGTSTP and SIGTTIN.
    SignalHandling signal_handling = SignalHandling::worker;
    /// Time between two checks for paused queues and trims of dead lists; 10 ms to 24 h.
    std::chrono::milliseconds recheck = std::chrono::seconds(1);
    /// Options of the scheduler that moves due messages to the worker's queues and to their retry
    /// queues. Empty = a scheduler runs elsewhere.
    std::optional<SchedulerOptions> scheduler = SchedulerOptions{};
    /// Time between two looks of a collector for the jobs of dead workers. The workers of a queue
    /// take turns at it (garbage_collector.hpp; GarbageCollectorOptions::grace is 10 s). Empty = a
    /// collector runs elsewhere.
    std::optional<std::chrono::milliseconds> collect_interval = std::chrono::seconds(15);
    /// Run around each call of a handler, the first one outermost.
    std::vector<HandleMiddleware> handle_middleware = {};
    /// Chooses if Worker::handle refuses handlers around which `handle_middleware` cannot run.
    HandleMiddlewareScope handle_middleware_scope = HandleMiddlewareScope::all_handlers;
    /// Hear of the beginning of each run in this order, and of its end in the opposite one.
    std::vector<JobObserver> observers = {};
    /// Run around each fetch from a queue, the first one outermost.
    std::vector<FetchMiddleware> fetch_middleware = {};
    /// The default never blocks. One that does holds up the worker's threads: see WorkerEvent.
    std::function<void(const WorkerEvent&)> on_event = write_to_stderr;
};

} // namespace orizuru
