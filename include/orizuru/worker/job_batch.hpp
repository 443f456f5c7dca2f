// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A batch of jobs that one call of a handler gets.

#include <orizuru/worker/job_context.hpp>

#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>

namespace orizuru {

/// The jobs of a batch in the order of the queue: `for (JobContext<T>& job : batch)`. Each can be
/// settled on its own. Never empty. A view, valid while the handler runs.
template <class T>
class JobBatch {
  public:
    /// Goes over the jobs of a batch, in the order of the queue. Valid while the handler runs.
    class Iterator {
      public:
        using iterator_concept = std::forward_iterator_tag; ///< it may go over the jobs again
        using difference_type = std::ptrdiff_t; ///< positions between two jobs of a batch
        using value_type = JobContext<T>;       ///< one run of a job; it cannot be copied

        /// Belongs to no batch: it can be assigned to and compared with others of its kind.
        Iterator() = default;

        /// The job that it is at. Not for an iterator at the end.
        JobContext<T>& operator*() const noexcept { return static_cast<JobContext<T>&>(**m_job); }
        /// Does the same, as a pointer.
        JobContext<T>* operator->() const noexcept { return &**this; }
        /// Goes to the next job. Not at the end.
        Iterator& operator++() noexcept {
            ++m_job;
            return *this;
        }
        /// Does the same, and returns where it was.
        Iterator operator++(int) noexcept { return Iterator(m_job++); }
        /// True when both are at the same job, or both at the end. For iterators of one batch.
        bool operator==(const Iterator&) const = default;

      private:
        friend class JobBatch;
        explicit Iterator(JobRun* const* job) noexcept : m_job(job) {}

        JobRun* const* m_job = nullptr;
    };

    /// The number of jobs, 1 or more.
    [[nodiscard]] std::size_t size() const noexcept { return m_jobs.size(); }
    /// The job at a position, which must be less than size(). Valid while the handler runs.
    [[nodiscard]] JobContext<T>& operator[](std::size_t index) const noexcept {
        return static_cast<JobContext<T>&>(*m_jobs[index]);
    }
    /// At the job that was taken from the queue first.
    [[nodiscard]] Iterator begin() const noexcept { return Iterator(m_jobs.data()); }
    /// Behind the last job.
    [[nodiscard]] Iterator end() const noexcept { return Iterator(m_jobs.data() + m_jobs.size()); }

  private:
    friend class Worker;
    /// Each is a JobContext<T>.
    explicit JobBatch(std::span<JobRun* const> jobs) noexcept : m_jobs(jobs) {}

    std::span<JobRun* const> m_jobs;
};

/// A handler for batches of jobs of T: copyable, returns void, and callable with a JobBatch<T>.
template <class F, class T>
concept JobBatchHandler = std::copy_constructible<F> && detail::HandlerOf<F, JobBatch<T>>;

} // namespace orizuru
