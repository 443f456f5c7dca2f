// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Jobs that no handler gets.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/worker/job_task.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/worker/job_context.hpp>

#include <string>
#include <utility>

namespace orizuru::detail {

/// One whose envelope was read and whose payload could not be decoded for lack of memory. This
/// counts as a failed attempt, though no handler has begun: the retry policy says when the next one
/// follows.
class UndecodedJob : public JobTask {
  public:
    UndecodedJob(ServedQueue& queue, JobRun& run, std::string why)
        : JobTask(queue, run), m_why(std::move(why)) {}

    Ran run(TimePoint /*ended*/) noexcept override {
        settling().fail_undecoded(m_why);
        return {retry_at().has_value()};
    }

  private:
    std::string m_why;
};

/// One that is on its way to another queue (forwarding.hpp).
class PassingJob : public JobTask {
  public:
    PassingJob(ServedQueue& queue, JobRun& run) : JobTask(queue, run) {}

    Ran run(TimePoint /*ended*/) noexcept override {
        settling().forward();
        return {retry_at().has_value()};
    }
};

} // namespace orizuru::detail
