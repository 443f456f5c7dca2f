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
    class Iterator {
      public:
        using iterator_concept = std::forward_iterator_tag;
        using difference_type = std::ptrdiff_t;
        using value_type = JobContext<T>;

        Iterator() = default;

        JobContext<T>& operator*() const noexcept { return static_cast<JobContext<T>&>(**m_job); }
        JobContext<T>* operator->() const noexcept { return &**this; }
        Iterator& operator++() noexcept {
            ++m_job;
            return *this;
        }
        Iterator operator++(int) noexcept { return Iterator(m_job++); }
        bool operator==(const Iterator&) const = default;

      private:
        friend class JobBatch;
        explicit Iterator(JobRun* const* job) noexcept : m_job(job) {}

        JobRun* const* m_job = nullptr;
    };

    [[nodiscard]] std::size_t size() const noexcept { return m_jobs.size(); }
    [[nodiscard]] JobContext<T>& operator[](std::size_t index) const noexcept {
        return static_cast<JobContext<T>&>(*m_jobs[index]);
    }
    [[nodiscard]] Iterator begin() const noexcept { return Iterator(m_jobs.data()); }
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
