// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job with a key that may lead a burst (jobs/order/job_order.hpp): its thread handles those
// behind it, too. The guard goes from job to job, and the last one settles them all.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/worker/job_task.hpp>
#include <orizuru/detail/worker/job_type.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/worker/job_context.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru {

class Connection;

} // namespace orizuru

namespace orizuru::detail {

class BurstJob : public JobTask {
  public:
    BurstJob(ServedQueue& queue, JobRun& run, const KindHandler& handler)
        : JobTask(queue, run, handler.options, JobSettling::Way::in_burst),
          m_queue(queue),
          m_handler(handler) {}

    /// Once, for the one that was fetched.
    void take_place() noexcept { m_place.emplace(m_queue); }

    // The macro here keeps files that only include this from emitting the class.
    ORIZURU_INLINE Ran run(TimePoint ended) noexcept override;
    [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept override {
        return current().settling().retry_at();
    }
    void try_again() noexcept override { current().settling().try_again(); }
    void requeue(std::chrono::milliseconds patience) noexcept override {
        {
            const std::lock_guard lock(m_passing);
            m_ends = true;
        }
        current().settling().requeue().run(patience);
    }
    [[nodiscard]] const JobRun& job() const noexcept override { return current().JobTask::job(); }
    /// The first one is what Redis shows as held.
    void each_job(FunctionRef<void(const JobRun&)> take) const override {
        take(JobTask::job());
        if (&current() != this) {
            take(job());
        }
    }
    ORIZURU_INLINE void cancel(std::string_view job_id, std::string_view reason) override;

  protected:
    /// Makes a job of this one's type.
    [[nodiscard]] virtual std::shared_ptr<JobTask> make(std::string_view payload,
                                                        Scratch& scratch) = 0;
    [[nodiscard]] ServedQueue& queue() const noexcept { return m_queue; }
    [[nodiscard]] const KindHandler& handler() const noexcept { return m_handler; }

  private:
    // For the connection that all jobs share: a job that is done waits for no burst.
    static constexpr std::chrono::milliseconds lead_patience{10};

    [[nodiscard]] BurstJob& current() const noexcept { return *m_current; }
    /// Returns the job that is to be handled behind this one; else null, and settles the burst
    /// unless it is settled.
    BurstJob* next_of(BurstJob& job) noexcept;
    BurstJob* take_next(BurstJob& job);
    /// Reads the others. Returns whether there are any.
    bool find_others();
    void read(Connection& connection);

    ServedQueue& m_queue;
    const KindHandler& m_handler;
    std::optional<ServedQueue::Place> m_place; ///< the whole burst's
    Scratch m_scratch;
    std::vector<std::string> m_waiting;           ///< behind it, each with its digits in front
    std::vector<std::shared_ptr<JobTask>> m_jobs; ///< those that were made; others may look at them
    std::atomic<BurstJob*> m_current{this};
    std::mutex m_passing; ///< guards what follows, and changes of the one before
    bool m_ends = false;  ///< no other is to follow
};

template <class T>
class BurstJobOf : public BurstJob {
  public:
    using BurstJob::BurstJob;

  protected:
    std::shared_ptr<JobTask> make(std::string_view payload, Scratch& scratch) override {
        return make_job_task<T, BurstJobOf<T>>(queue(), payload, scratch, handler());
    }
};

template <class T>
[[nodiscard]] std::shared_ptr<JobTask> make_leading_job(ServedQueue& queue,
                                                        std::string_view payload, Scratch& scratch,
                                                        const KindHandler& handler) {
    auto job = std::make_shared<JobOf<T, BurstJobOf<T>>>(queue, payload, scratch, handler);
    job->take_place();
    return job;
}

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/keyed/burst_job.ipp>
#endif
