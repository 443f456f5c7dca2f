// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer of jobs that may be killed at any moment, and records its actions in a journal.

#pragma once

#include "crash/support/job_journal.hpp"
#include "crash/support/work.hpp"
#include "fuzz/simulation/chance.hpp"

#include <orizuru/error.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_producer.hpp>
#include <orizuru/jobs/unique.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace orizuru::test {

/// The queues of a worker, the ordinary ones at even positions. The others are urgent: what a
/// worker takes of them, it begins at once.
[[nodiscard]] inline std::vector<std::string> job_queues(const std::string& queue,
                                                         std::size_t count) {
    std::vector<std::string> names{queue};
    for (std::size_t i = 1; i < count; ++i) {
        names.push_back(queue + (i % 2 == 0 ? "-" : "-urgent-") + std::to_string(i));
    }
    return names;
}
[[nodiscard]] inline bool is_urgent(const std::string& queue) {
    return queue.find("-urgent-") != std::string::npos;
}

/// How many attempts a job has: some fail in each of them.
inline constexpr int job_attempts = 8;
inline constexpr std::chrono::milliseconds job_retry_delay{50};

/// Pushes jobs to one queue. The number of each is its id.
class JobPushing {
  public:
    JobPushing(const Work& work, const std::string& queue, std::uint64_t first)
        : m_journal(work.journal),
          m_serial(work.serial),
          m_next(first),
          m_jobs(connected<JobProducer<std::string>>(
              work.endpoint(), queue,
              JobProducerOptions<std::string>{.middleware = {[this](auto& job, const auto& push) {
                                                  number(job);
                                                  push();
                                              }}})) {}
    JobPushing(const JobPushing&) = delete;
    JobPushing& operator=(const JobPushing&) = delete;

    void push(const JobPlan& plan, std::chrono::milliseconds delay = {}) {
        noting({.clock = wall_clock() + delay.count()},
               [&] { return m_jobs->push(plan.text(), {.delay = delay}).has_value(); });
    }
    /// Refused when a producer has pushed a job with this id to the queue before.
    void push_unique(const JobPlan& plan, std::uint64_t id) {
        noting({.unique = id, .clock = wall_clock()}, [&] {
            Job<std::string> job = make_job(plan.text());
            number(job);
            return orizuru::push_unique(m_jobs->producer(), std::to_string(id), job,
                                        {.release = UniqueRelease::never});
        });
    }
    [[nodiscard]] std::uint64_t size() { return m_jobs->producer().size(); }

  private:
    void number(Job<std::string>& job) const {
        job.id = std::to_string(m_next);
        job.kind = kind_of_job(m_next);
    }
    template <class Push>
    void noting(const JobRecord& what, Push push) {
        JobRecord record = what;
        record.job = m_next;
        record.serial = m_serial;
        const auto note = [&](JobStep step) {
            record.step = step;
            m_journal.write(record);
        };
        note(JobStep::pushing);
        try {
            note(push() ? JobStep::pushed : JobStep::not_pushed);
        } catch (const ConnectionError& error) {
            if (!error.in_doubt()) {
                note(JobStep::not_pushed);
            }
        } catch (const ReplyError& error) {
            if (!is_for_now(error)) {
                throw;
            }
        }
        ++m_next;
    }

    JobJournal m_journal;
    std::uint64_t m_serial;
    std::uint64_t m_next;
    std::unique_ptr<JobProducer<std::string>> m_jobs;
};

class JobProducerWork {
  public:
    explicit JobProducerWork(const Work& work)
        : m_chance(work.seed), m_pause(std::chrono::microseconds(1'000'000 / work.rate)) {
        std::uint64_t first = work.first_message();
        for (const std::string& queue : job_queues(work.queue, work.queues)) {
            m_queues.push_back(std::make_unique<JobPushing>(work, queue, first));
            first += Work::most_messages / work.queues;
        }
    }

    [[noreturn]] void run() {
        while (true) {
            push(*m_queues[m_chance.below(m_queues.size())]);
            std::this_thread::sleep_for(m_chance.happens(0.05) && is_crowded() ? long_pause
                                                                               : m_pause);
        }
    }

  private:
    // Slow workers must not be flooded.
    static constexpr std::uint64_t crowded = 500;
    static constexpr std::chrono::microseconds long_pause = std::chrono::seconds(1);

    void push(JobPushing& queue) {
        switch (m_chance.below(10)) {
        case 0:
        case 1:
        case 2:
            return queue.push(plan(), std::chrono::milliseconds(m_chance.between(1, 700)));
        case 3:
            // The other producers make the same ids at the same time.
            return m_queues[0]->push_unique(plan(), static_cast<std::uint64_t>(wall_clock() / 30));
        default:
            return queue.push(plan());
        }
    }
    JobPlan plan() {
        const double kind = m_chance.fraction();
        return {.failures = kind < 0.02  ? job_attempts
                            : kind < 0.3 ? m_chance.between(1, 3)
                                         : 0,
                // Some take longer than a stop waits.
                .milliseconds =
                    m_chance.happens(0.03) ? m_chance.between(150, 250) : m_chance.between(0, 15)};
    }
    bool is_crowded() {
        try {
            return std::accumulate(m_queues.begin(), m_queues.end(), std::uint64_t{0},
                                   [](std::uint64_t sum, const auto& queue) {
                                       return sum + queue->size();
                                   }) > crowded;
        } catch (const Error&) {
            return true;
        }
    }

    Chance m_chance;
    std::chrono::microseconds m_pause;
    std::vector<std::unique_ptr<JobPushing>> m_queues;
};

} // namespace orizuru::test
