// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job that is handled by itself.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/worker/job_settling.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

namespace orizuru::detail {

class JobTask : public Task {
  public:
    using Handler = std::function<void(JobRun&)>;

    JobTask(ServedQueue& queue, JobRun& run, const Handler& handler)
        : m_queue(queue), m_run(run), m_handler(handler), m_settling(queue, run) {}

    void run() noexcept override {
        try {
            if (m_settling.begin()) {
                m_settling.end(handle_in_middleware(m_queue.shared().options, m_run,
                                                    [this] { m_handler(m_run); }));
            }
        } catch (...) {
            tell_thrown([this](std::string_view what) {
                m_settling.tell(WorkerEventKind::unsettled, what);
            });
        }
    }
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
    ServedQueue& m_queue;
    JobRun& m_run;
    const Handler& m_handler;
    JobSettling m_settling;
};

} // namespace orizuru::detail
