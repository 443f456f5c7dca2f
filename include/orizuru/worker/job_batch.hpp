// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Several jobs that a worker handles together.

#include <orizuru/worker/job_context.hpp>

#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>

namespace orizuru {

/// Jobs in the order of the queue, each one settled on its own: `for (JobContext<T>& job : batch)`.
/// Never empty. A view, valid while the handler runs.
template <class T>
class JobBatch {
  public:
    class Iterator {
      public:
        using iterator_concept = std::forward_iterator_tag;
        using difference_type = std::ptrdiff_t;
        using value_type = JobContext<T>;

        Iterator() = default;
        explicit Iterator(JobContext<T>* const* job) noexcept : m_job(job) {}

        JobContext<T>& operator*() const noexcept { return **m_job; }
        JobContext<T>* operator->() const noexcept { return *m_job; }
        Iterator& operator++() noexcept {
            ++m_job;
            return *this;
        }
        Iterator operator++(int) noexcept { return Iterator(m_job++); }
        bool operator==(const Iterator&) const = default;

      private:
        JobContext<T>* const* m_job = nullptr;
    };

    /// Of jobs that outlive it, as `jobs` does.
    explicit JobBatch(std::span<JobContext<T>* const> jobs) noexcept : m_jobs(jobs) {}

    [[nodiscard]] std::size_t size() const noexcept { return m_jobs.size(); }
    [[nodiscard]] JobContext<T>& operator[](std::size_t index) const noexcept {
        return *m_jobs[index];
    }
    [[nodiscard]] Iterator begin() const noexcept { return Iterator(m_jobs.data()); }
    [[nodiscard]] Iterator end() const noexcept { return Iterator(m_jobs.data() + m_jobs.size()); }

  private:
    std::span<JobContext<T>* const> m_jobs;
};

/// What can handle batches of jobs of T: anything that can be copied and called with one, and
/// returns nothing.
template <class F, class T>
concept JobBatchHandler = std::copy_constructible<F> && detail::HandlerOf<F, JobBatch<T>>;

} // namespace orizuru
