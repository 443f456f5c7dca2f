// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What can be chosen for a Worker and for each of its queues.

#include <orizuru/consumer_options.hpp>
#include <orizuru/jobs/dead_list.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru {

/// Which queue a free thread looks at first.
enum class QueueOrder {
    strict,   ///< as they were given: a queue is served when those before it are empty
    weighted, ///< drawn anew each time; a weight of 3 is three times as often before one of 1
    random    ///< drawn anew each time, all alike
};

/// What a crash does to the jobs that were being handled.
enum class Guarantee {
    at_least_once, ///< acked when the handler has returned: a crash has them run again
    at_most_once   ///< acked before the handler runs: a crash loses them, failures are not retried;
                   ///< so is a batch whose acks were not all in time, as nobody knows whose
};

/// Who listens to SIGTERM, SIGINT, SIGTSTP and SIGTTIN while a Worker runs.
enum class SignalHandling {
    worker, ///< the worker: stop, stop, quiet, report
    none    ///< whoever does so far
};

/// Around each handling, the first one outermost; any thread, several at once. A job fails by what
/// it throws, as by what the handler throws, and when it returns without having called `next()`:
/// one that is not to be handled it settles itself, which it can by the guard if it knows the type,
/// `dynamic_cast<JobContext<T>&>(job)`.
using HandleMiddleware = std::function<void(JobRun& job, const std::function<void()>& next)>;

/// Around each fetch from a queue, the first one outermost; returns what `fetch()` returned:
/// whether there was something. One that does not call it has the queue passed over, for
/// `WorkerOptions::recheck`. A fetch that waits lasts up to a minute, and ends when the worker
/// stops; middleware that does not return holds up the stop, and meanwhile nothing is fetched from
/// any queue. Any thread, several at once.
using FetchMiddleware =
    std::function<bool(std::string_view queue, const std::function<bool()>& fetch)>;

/// For one queue of a Worker.
struct QueueOptions {
    /// With QueueOrder::weighted: 1 or more.
    int weight = 1;
    /// A job whose payload there is no memory to decode has failed once, too; no handler has begun,
    /// so that it is retried with either guarantee.
    RetryPolicy retry = {};
    Guarantee guarantee = Guarantee::at_least_once;
    /// How long the worker may go unheard before another one gets its jobs; 100 ms to 24 h.
    std::chrono::milliseconds lease = std::chrono::seconds(30);
    /// With 1 a fetch takes a job for each thread that is free, or what its batch lacks, and
    /// nothing is fetched while none is. Above 1, a fetch takes so many, and up to twice as many
    /// are held: faster for short jobs, but those in hand wait for a thread of this process while
    /// others might have one.
    int prefetch = 1;
    /// Deferred: faster for short jobs; more of them run again after a crash, which is counted for
    /// those that ended shortly before it rather than for those that it interrupted. For handlers
    /// of single jobs that are acked behind them: before a handler each ack is awaited, and those
    /// of a batch go together, with one round trip that is awaited.
    AckMode ack = AckMode::immediate;
    std::int64_t max_payload = std::int64_t{16} << 20;
    /// How often a job may be in the hands of a worker that dies; once more and it goes to the dead
    /// list. Each time counts as an attempt, added when a try fails: of jobs that only ever crash,
    /// this is the bound, and not `retry.max_attempts`.
    int max_recoveries = 3;
    /// How much of the dead list is kept.
    DeadLimits dead = {};
    /// As ConsumerOptions::on_beat: three times in each lease, on a thread of the queue's own. To
    /// renew what handlers hold elsewhere: `[&once] { once.renew(); }` (once.hpp).
    std::function<void()> on_beat = {};
};

struct WorkerOptions {
    /// Label in the consumers' ids, for people: 1 to 100 of A-Z a-z 0-9 _ . -
    std::string name = "worker";
    /// How many jobs run at once, each in a thread: 1 to 10,000.
    int concurrency = 10;
    QueueOrder order = QueueOrder::strict;
    /// How long a stop waits for jobs to end before they are given back. While Redis does not
    /// answer it is over at latest 1 s later, or 5 s later with handlers that have not ended.
    std::chrono::milliseconds stop_timeout = std::chrono::seconds(25);
    SignalHandling signals = SignalHandling::worker;
    /// How often it is looked whether a queue was paused, and dead lists are cut.
    std::chrono::milliseconds recheck = std::chrono::seconds(1);
    /// Moves what is due to the queues, and to those that retries go to. None: done elsewhere.
    std::optional<SchedulerOptions> scheduler = SchedulerOptions{};
    /// How often jobs of dead workers are looked for, by one of all the workers of a queue, once
    /// Redis is up for 10 s (GarbageCollectorOptions::grace). None: a collector runs elsewhere,
    /// where `blamed` should be the concurrency.
    std::optional<std::chrono::milliseconds> collect_interval = std::chrono::seconds(5);
    std::vector<HandleMiddleware> handle_middleware = {};
    std::vector<FetchMiddleware> fetch_middleware = {};
    std::function<void(const WorkerEvent&)> on_event = write_to_stderr;
};

} // namespace orizuru
