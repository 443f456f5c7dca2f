// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a thread of a worker has to run: a job, or a batch of them.

#include <orizuru/detail/base/wake.hpp>
#include <orizuru/worker/job_context.hpp>

#include <memory>
#include <optional>

namespace orizuru::detail {

class ParkedTasks;

class Task {
  public:
    Task() = default;
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    virtual ~Task() = default;

    /// Handles the job and settles it. Throws nothing.
    virtual void run() noexcept = 0;
    /// When to try again what Redis has refused of that, or what there was no memory for; none when
    /// nothing is to be tried again. For the thread in `run` or `try_again`, and behind them.
    [[nodiscard]] virtual std::optional<TimePoint> retry_at() const noexcept = 0;
    virtual void try_again() noexcept = 0;
    /// Back to the queue's serving end with it, unless it is settled; also while it runs.
    virtual void give_back() noexcept = 0;
    [[nodiscard]] virtual const JobRun& job() const noexcept = 0;

  private:
    friend class ParkedTasks;

    std::shared_ptr<Task> m_next_parked;
};

} // namespace orizuru::detail
