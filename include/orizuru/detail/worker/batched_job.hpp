// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job of a batch.

#include <orizuru/detail/worker/job_type.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/settling/job_settling.hpp>
#include <orizuru/worker/job_context.hpp>

#include <memory>
#include <string_view>

namespace orizuru::detail {

class BatchedJob {
  public:
    BatchedJob(ServedQueue& queue, JobRun& run) : m_run(run), m_settling(queue, run) {}
    BatchedJob(const BatchedJob&) = delete;
    BatchedJob& operator=(const BatchedJob&) = delete;
    virtual ~BatchedJob() = default;

    [[nodiscard]] JobRun& run() const noexcept { return m_run; }
    [[nodiscard]] JobSettling& settling() noexcept { return m_settling; }

    /// Returns whether the handler gets the job.
    bool begin() noexcept {
        m_begun = m_settling.begin();
        return m_begun;
    }
    [[nodiscard]] bool begun() const noexcept { return m_begun; }

  private:
    JobRun& m_run;
    JobSettling m_settling;
    bool m_begun = false;
};

template <class T>
[[nodiscard]] std::unique_ptr<BatchedJob>
make_batched_job(ServedQueue& queue, std::string_view payload, Scratch& scratch) {
    return std::make_unique<JobOf<T, BatchedJob>>(queue, payload, scratch);
}

} // namespace orizuru::detail
