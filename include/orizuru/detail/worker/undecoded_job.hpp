// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job whose envelope was read and whose payload could not be decoded for lack of memory. This
// counts as a failed attempt, though no handler has begun: the retry policy says when the next one
// follows.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/worker/job_settling.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/worker/job_context.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::detail {

class UndecodedJob : public Task {
  public:
    UndecodedJob(ServedQueue& queue, JobRun& run, std::string why)
        : m_why(std::move(why)), m_run(run), m_settling(queue, run) {}

    void run() noexcept override { m_settling.fail_undecoded(m_why); }
    [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept override {
        return m_settling.retry_at();
    }
    void try_again() noexcept override { m_settling.try_again(); }
    void requeue(std::chrono::milliseconds patience) noexcept override {
        m_settling.requeue(patience);
    }
    [[nodiscard]] const JobRun& job() const noexcept override { return m_run; }
    [[nodiscard]] JobRun& job() noexcept { return m_run; }

  private:
    std::string m_why;
    JobRun& m_run;
    JobSettling m_settling;
};

} // namespace orizuru::detail
