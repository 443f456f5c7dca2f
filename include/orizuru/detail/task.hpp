// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a thread of a worker has to run: a job, or a batch of them.

#include <orizuru/job_context.hpp>

namespace orizuru::detail {

class Task {
  public:
    Task() = default;
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    virtual ~Task() = default;

    /// Handles the job and settles it. Throws nothing.
    virtual void run() noexcept = 0;
    /// Back to the queue's serving end with it, unless it is settled; also while it runs.
    virtual void give_back() noexcept = 0;
    [[nodiscard]] virtual const JobRun& job() const noexcept = 0;
};

} // namespace orizuru::detail
