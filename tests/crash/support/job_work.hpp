// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A worker that may be killed at any moment, and records its handlers' actions in a journal.

#pragma once

#include "crash/support/job_journal.hpp"
#include "crash/support/job_pushing.hpp"
#include "crash/support/work.hpp"

#include <orizuru/error.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/job_context.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

namespace orizuru::test {

inline constexpr int job_threads = 4;
inline constexpr int job_prefetch = 10; ///< of a queue that is not urgent

/// Why a job fails.
[[nodiscard]] inline std::string failure_of_job(std::uint64_t job) {
    return "job " + std::to_string(job) + " is to fail";
}

class JobWork {
  public:
    explicit JobWork(const Work& work) : m_work(work), m_journal(work.journal) {}

    /// Runs until SIGTERM comes.
    void run() {
        while (true) {
            try {
                orizuru::Worker worker(m_work.endpoint(), options());
                const auto handler = [this](JobContext<std::string>& job) { handle(job); };
                const auto queues = job_queues(m_work.queue, m_work.queues);
                for (const std::string& queue : queues) {
                    if (is_urgent(queue)) {
                        worker.handle<std::string>(queue, handler, urgent());
                    }
                }
                for (const std::string& queue : queues) {
                    if (!is_urgent(queue)) {
                        worker.handle<std::string>(queue, handler, normal());
                    }
                }
                worker.run();
                std::_Exit(EXIT_SUCCESS); // handlers may still run
            } catch (const ConnectionError&) {
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
        }
    }

  private:
    [[nodiscard]] WorkerOptions options() const {
        WorkerOptions options;
        options.name = m_work.name();
        options.concurrency = job_threads;
        options.order = m_work.index % 2 == 0 ? QueueOrder::strict : QueueOrder::random;
        options.stop_timeout = std::chrono::milliseconds(100);
        options.collect_interval = storm_pass * ((m_work.queues + 1) / 2); // as often in all
        options.on_event = nullptr;
        return options;
    }
    static QueueOptions urgent() {
        QueueOptions options;
        options.retry.max_attempts = job_attempts;
        options.retry.backoff = backoff::fixed(job_retry_delay);
        options.lease = storm_lease;
        options.max_recoveries = std::numeric_limits<int>::max();
        options.dead = {.most = 0, .oldest = {}};
        return options;
    }
    [[nodiscard]] QueueOptions normal() const {
        QueueOptions options = urgent();
        options.prefetch = job_prefetch;
        options.ack = m_work.index < 2 ? AckMode::immediate : AckMode::deferred;
        return options;
    }

    void handle(JobContext<std::string>& context) {
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
        note(JobStep::started);
        const JobPlan plan = JobPlan::from(context->payload);
        std::this_thread::sleep_for(std::chrono::milliseconds(plan.milliseconds));
        if (record.attempt <= plan.failures) {
            record.clock = wall_clock() + job_retry_delay.count();
            note(JobStep::failing);
            throw std::runtime_error(failure_of_job(record.job));
        }
        note(JobStep::done);
        if (!is_urgent(context.queue()) || record.job % 3 != 0) {
            return;
        }
        const auto guard = context.guard();
        if (!guard->settled() && guard->ack()) {
            record.time = monotonic_time();
            note(JobStep::acked);
        }
    }

    const Work& m_work;
    JobJournal m_journal;
};

} // namespace orizuru::test
