// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker that may be killed at any moment, and records its handlers' actions in a journal.

#pragma once

#include "crash/support/coroutine_work.hpp"
#include "crash/support/job_journal.hpp"
#include "crash/support/job_pushing.hpp"
#include "crash/support/late_times.hpp"
#include "crash/support/work.hpp"

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/job_context.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace orizuru::test {

inline constexpr int job_threads = 4;
inline constexpr int jobs_in_flight = 20; ///< of a queue that is not urgent
inline constexpr int job_prefetch = 10;   ///< of a queue that is not urgent
inline constexpr int urgent_at_once = 2;
inline constexpr std::chrono::milliseconds job_time_limit{100};
/// As often in all, however many queues there are.
[[nodiscard]] inline std::chrono::milliseconds collecting_interval(std::size_t queues) {
    return storm_pass * ((queues + 1) / 2);
}

/// Why a job fails.
[[nodiscard]] inline std::string failure_of_job(std::uint64_t job) {
    return "job " + std::to_string(job) + " is to fail";
}
inline constexpr char failure_by_time[] = "the time limit of 100 ms is over: stopped";

class JobWork {
  public:
    explicit JobWork(const Work& work) : m_work(work), m_journal(work.journal) {}

    /// Runs until SIGTERM comes.
    void run() {
        while (true) {
            try {
                orizuru::Worker worker(m_work.endpoint(), options());
                const auto queues = job_queues(m_work.queue, m_work.queues);
                for (const std::string& queue : queues) {
                    if (is_urgent(queue)) {
                        serve(worker, queue, urgent());
                    }
                }
                for (const std::string& queue : queues) {
                    if (!is_urgent(queue)) {
                        serve(worker, queue, normal());
                    }
                }
                worker.run();
                std::_Exit(EXIT_SUCCESS);      // handlers may still run
            } catch (const ConnectionError&) { // NOLINT(bugprone-empty-catch)
            } catch (const ReplyError& error) {
                if (!is_for_now(error)) {
                    throw;
                }
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }

  private:
    /// Every other worker has handlers that return while a thread of their own goes on, or
    /// coroutines.
    [[nodiscard]] bool ends_later() const { return m_work.index % 2 == 1; }

    void serve(Worker& worker, const std::string& queue, const QueueOptions& options) {
#if defined(ASIO_HAS_CO_AWAIT)
        if (m_work.index % 4 == 3) {
            serve(worker, queue, options, [this](const std::string& kind) {
                const auto handle = [this, kind](JobContext<std::string>& job) {
                    this->handle(job, kind);
                };
                // A time limit that is over before `handle` would leave no record.
                const std::chrono::milliseconds time(kind == "limited" ? 0 : 1);
                return after(time, m_strands, handle);
            });
            return;
        }
#endif
        if (ends_later()) {
            serve(worker, queue, options, [this](const std::string& kind) {
                return [this, kind](JobContext<std::string>& job, JobDone done) {
                    std::thread([this, kind, &job, done = std::move(done)]() mutable {
                        handle_then(job, kind, std::move(done));
                    }).detach();
                };
            });
        } else {
            serve(worker, queue, options, [this](const std::string& kind) {
                return [this, kind](JobContext<std::string>& job) { handle(job, kind); };
            });
        }
    }
    void handle_then(JobContext<std::string>& job, const std::string& kind, JobDone done) {
        try {
            handle(job, kind);
        } catch (...) {
            done(std::current_exception());
            return;
        }
        done();
    }
    template <class MakeHandler>
    void serve(Worker& worker, const std::string& queue, const QueueOptions& options,
               MakeHandler handler) {
        RetryPolicy decided = options.retry;
        decided.backoff = backoff::fixed(std::chrono::hours(1));
        decided.decide = [](const std::exception_ptr&, int) {
            return RetryDecision{RetryDecision::Action::retry, job_retry_delay};
        };
        worker.handle<std::string>(queue, handler(""), options);
        worker.handle<std::string>(queue, "decided", handler("decided"), {.retry = decided});
        worker.handle<std::string>(queue, "limited", handler("limited"),
                                   {.time_limit = job_time_limit});
    }
    [[nodiscard]] WorkerOptions options() {
        WorkerOptions options;
        options.name = m_work.name();
        options.concurrency = job_threads;
        options.order = m_work.index % 2 == 0 ? QueueOrder::strict : QueueOrder::random;
        options.stop_timeout = std::chrono::milliseconds(100);
        options.collect_interval = collecting_interval(m_work.queues);
        options.observers = {[this](const JobRun& job) {
            return [this, &job](const JobEnd&) { note_if_in_time(job); };
        }};
        options.on_event =
            [note = noting_events(m_work.late_times(), m_work.serial)](const WorkerEvent& event) {
                if (event.event != nullptr) {
                    note(*event.event);
                }
            };
        return options;
    }
    static QueueOptions urgent() {
        QueueOptions options;
        options.retry.max_attempts = job_attempts;
        options.retry.backoff = backoff::fixed(job_retry_delay);
        options.lease = storm_lease;
        options.max_recoveries = std::numeric_limits<int>::max();
        options.dead = {.most = 0, .oldest = {}};
        options.concurrency = urgent_at_once;
        return options;
    }
    [[nodiscard]] QueueOptions normal() const {
        QueueOptions options = urgent();
        options.concurrency = ends_later() ? std::optional(jobs_in_flight) : std::nullopt;
        options.prefetch = job_prefetch;
        options.ack = m_work.index < 2 ? AckMode::immediate : AckMode::deferred;
        return options;
    }

    void handle(JobContext<std::string>& context, const std::string& kind) {
        std::atomic<int>& running = m_running.at(context.queue());
        const auto end = detail::at_exit([&] { --running; });
        const bool crowded = ++running > urgent_at_once && is_urgent(context.queue());
        JobRecord record{.job = number_in(context.id()),
                         .defers = !is_urgent(context.queue()) && normal().ack == AckMode::deferred,
                         .attempt = context.attempt(),
                         .serial = m_work.serial,
                         .clock = wall_clock()};
        const auto note = [&](JobStep step) {
            record.step = step;
            m_journal.write(record);
        };
        record.body = body_of(context.guard()->payload());
        record.held = context.lease_valid();
        record.misplaced = crowded || kind != kind_of_job(record.job) || context.kind() != kind;
        note(JobStep::started);
        const JobPlan plan = JobPlan::from(context->payload);
        if (kind == "limited") {
            limited(context, record, plan);
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(plan.milliseconds));
        if (record.attempt <= plan.failures) {
            record.clock = wall_clock() + job_retry_delay.count();
            note(JobStep::failing);
            throw std::runtime_error(failure_of_job(record.job));
        }
        record.clock = 0;
        note(JobStep::done);
        if (!is_urgent(context.queue()) || record.job % 3 != 0) {
            return;
        }
        const auto guard = context.guard();
        try {
            if (!guard->settled() && guard->ack()) {
                record.time = monotonic_time();
                note(JobStep::acked);
            }
        } catch (const ReplyError& error) { // then the worker acks it
            if (!is_for_now(error)) {
                throw;
            }
        }
    }

    /// Behind the handler, and behind its worker's look at the clock.
    void note_if_in_time(const JobRun& job) {
        if (job.kind() == "limited" &&
            std::chrono::steady_clock::now() < job.since() + job_time_limit) {
            m_journal.write({.job = number_in(job.id()),
                             .step = JobStep::in_time,
                             .attempt = job.attempt(),
                             .serial = m_work.serial});
        }
    }

    /// Fails by its time limit; a stop well before that is no failure. Its worker looks at the
    /// clock later than this handler does, and may count a run as failed that was done in time.
    void limited(const JobContext<std::string>& context, JobRecord record, const JobPlan& plan) {
        const std::stop_token token = context.stop_token();
        const auto over = context.since() + job_time_limit;
        while (record.attempt <= plan.failures && !token.stop_requested()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        record.step = JobStep::done;
        record.clock = wall_clock_at(over) + job_retry_delay.count();
        if (token.stop_requested()) {
            if (std::chrono::steady_clock::now() < over - job_time_limit / 2) {
                record.step = JobStep::stopping;
                m_journal.write(record);
                throw std::runtime_error("the worker stops");
            }
            std::this_thread::sleep_until(over); // it may be over when the worker looks
            record.clock = wall_clock() + job_retry_delay.count();
            record.step = JobStep::failing;
        }
        m_journal.write(record);
        if (record.step == JobStep::failing) {
            throw std::runtime_error("stopped"); // the worker may have been first
        }
    }
    [[nodiscard]] static std::map<std::string, std::atomic<int>> counts_of(const Work& work) {
        std::map<std::string, std::atomic<int>> counts;
        for (const std::string& queue : job_queues(work.queue, work.queues)) {
            counts[queue] = 0;
        }
        return counts;
    }

    const Work& m_work;
    JobJournal m_journal;
#if defined(ASIO_HAS_CO_AWAIT)
    const Strands m_strands{2 * jobs_in_flight};
#endif
    std::map<std::string, std::atomic<int>> m_running = counts_of(m_work); ///< by queue
};

} // namespace orizuru::test
