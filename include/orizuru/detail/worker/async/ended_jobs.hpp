// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Jobs of a queue whose runs have ended elsewhere, to be settled together: the acks of those that
// have succeeded go to Redis in one script.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/worker/acks_together.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace orizuru::detail {

class EndedJobs final : public Task {
  public:
    explicit EndedJobs(ServedQueue& queue) : m_queue(queue), m_acks(queue) {}

    /// For the next job that is added.
    void make_room() {
        if (m_jobs.size() == m_jobs.capacity()) {
            m_jobs.reserve(2 * m_jobs.size() + 1);
        }
    }
    /// Its `run` settles it.
    void add(std::shared_ptr<Task> job) noexcept { m_jobs.push_back(std::move(job)); }
    [[nodiscard]] std::size_t size() const noexcept { return m_jobs.size(); }

    Ran run(TimePoint /*ended*/) noexcept override {
        for (const auto& job : m_jobs) {
            job->run({});
        }
        flush();
        return {retry_at().has_value()};
    }
    /// All pending settlements are repeated together, when the last of them is due.
    [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept override {
        std::optional<TimePoint> at = m_acks.retry_at();
        for (const auto& job : m_jobs) {
            at = std::max(at, job->retry_at());
        }
        return at;
    }
    void try_again() noexcept override {
        for (const auto& job : m_jobs) {
            if (job->retry_at()) {
                job->try_again();
            }
        }
        flush();
    }
    void requeue(std::chrono::milliseconds patience) noexcept override {
        // The newest first: each goes to the queue's front.
        std::for_each(m_jobs.rbegin(), m_jobs.rend(),
                      [=](const auto& job) { job->requeue(patience); });
    }
    [[nodiscard]] const JobRun& job() const noexcept override { return m_jobs.front()->job(); }

  private:
    void flush() noexcept {
        const QueueOptions& options = m_queue.options();
        if (options.ack == AckMode::immediate && options.guarantee == Guarantee::at_least_once) {
            m_acks.flush([this] { return m_queue.flush_acks(); });
        }
        if (!m_acks.retry_at()) {
            for (const auto& job : m_jobs) {
                if (!job->retry_at()) {
                    job->make_way();
                }
            }
        }
    }

    ServedQueue& m_queue;
    std::vector<std::shared_ptr<Task>> m_jobs;
    AcksTogether m_acks;
};

} // namespace orizuru::detail
