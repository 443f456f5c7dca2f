// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Jobs of a queue whose runs have ended elsewhere, to be settled together: the acks of those that
// have succeeded go to Redis in one script, what others need all at once.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/redis/scripts/recovery_counts.hpp>
#include <orizuru/detail/worker/async/job_in_flight.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/settling/acks_together.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class EndedJobs final : public Task {
  public:
    using Pace = JobInFlight::Pace;

    EndedJobs(ServedQueue& queue, Pace pace) : m_queue(queue), m_pace(pace), m_acks(queue) {}

    /// For the next job that is added.
    void make_room() {
        if (m_jobs.size() == m_jobs.capacity()) {
            m_jobs.reserve(2 * m_jobs.size() + 1);
        }
    }
    /// `task` is the job's.
    void add(JobInFlight& job, std::shared_ptr<Task> task) noexcept {
        m_jobs.push_back({job, std::move(task)});
    }
    [[nodiscard]] std::size_t size() const noexcept { return m_jobs.size(); }

    Ran run(TimePoint /*ended*/) noexcept override {
        settle([](const Job&) { return true; });
        return {retry_at().has_value()};
    }
    /// All pending settlements are repeated together, when the last of them is due.
    [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept override {
        std::optional<TimePoint> at = m_acks.retry_at();
        for (const Job& job : m_jobs) {
            at = std::max(at, job.task->retry_at());
        }
        return at;
    }
    void try_again() noexcept override {
        settle([](const Job& job) { return job.task->retry_at().has_value(); });
    }
    void requeue(std::chrono::milliseconds patience) noexcept override {
        // The newest first: each goes to the queue's front.
        std::for_each(m_jobs.rbegin(), m_jobs.rend(),
                      [=](const Job& job) { job.task->requeue(patience); });
    }
    [[nodiscard]] const JobRun& job() const noexcept override { return m_jobs.front().task->job(); }
    void each_job(FunctionRef<void(const JobRun&)> /*take*/) const override {} // none runs
    void cancel(std::string_view /*job_id*/, std::string_view /*reason*/) override {}

  private:
    struct Job {
        JobInFlight& job;
        std::shared_ptr<Task> task;
    };

    template <class Chosen>
    void settle(Chosen chosen) noexcept {
        ask_recoveries();
        for (const Job& job : m_jobs) {
            if (chosen(job)) {
                job.job.begin_settling();
            }
        }
        flush();
        for (const Job& job : m_jobs) {
            job.job.finish_settling();
            if (!m_acks.retry_at() && !job.task->retry_at()) {
                job.job.make_way();
            }
        }
    }
    /// Where that fails, each job asks by itself, and tells why it fails.
    void ask_recoveries() noexcept {
        try {
            std::vector<std::string_view> ids;
            std::vector<JobInFlight*> jobs;
            for (const Job& job : m_jobs) {
                if (job.job.needs_recoveries()) {
                    ids.push_back(job.task->job().id());
                    jobs.push_back(&job.job);
                }
            }
            if (ids.size() > 1) {
                const std::vector<JobRecoveries> all = m_queue.recoveries(ids);
                for (std::size_t i = 0; i < all.size(); ++i) {
                    jobs[i]->know(all[i]);
                }
            }
        } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
        }
    }
    void flush() noexcept {
        const QueueOptions& options = m_queue.options();
        if (m_pace == Pace::at_once && options.ack == AckMode::immediate &&
            options.guarantee == Guarantee::at_least_once) {
            m_acks.flush([this] { return m_queue.flush_acks(); });
        }
    }

    ServedQueue& m_queue;
    const Pace m_pace;
    std::vector<Job> m_jobs;
    AcksTogether m_acks;
};

} // namespace orizuru::detail
