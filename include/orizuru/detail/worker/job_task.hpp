// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job that is a task of its own, and one with a handler.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/worker/job_settling.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

namespace orizuru::detail {

class JobTask : public Task {
  public:
    [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept override {
        return m_settling.retry_at();
    }
    void try_again() noexcept override { m_settling.try_again(); }
    void requeue(std::chrono::milliseconds patience) noexcept override {
        m_settling.requeue(patience);
    }
    [[nodiscard]] const JobRun& job() const noexcept override { return m_run; }
    [[nodiscard]] JobRun& job() noexcept { return m_run; }

  protected:
    JobTask(ServedQueue& queue, JobRun& run) : m_run(run), m_settling(queue, run) {}
    /// `kind` lives as long as the queue.
    JobTask(ServedQueue& queue, JobRun& run, const KindOptions& kind)
        : m_run(run), m_settling(queue, run, kind) {}

    [[nodiscard]] JobSettling& settling() noexcept { return m_settling; }

  private:
    JobRun& m_run;
    JobSettling m_settling;
};

class HandledJob : public JobTask {
  public:
    struct Handler {
        std::function<void(JobRun&)> call;
        KindOptions options;
    };

    /// `handler` outlives the task, as `queue` does.
    HandledJob(ServedQueue& queue, JobRun& run, const Handler& handler)
        : JobTask(queue, run, handler.options),
          m_handler(handler),
          m_queue(queue),
          m_place(queue) {}

    void run() noexcept override {
        try {
            if (settling().begin(take_followed())) {
                JobRun* const run = &job();
                const Handling handling = handle_in_middleware(
                    m_queue.shared(), {&run, 1}, m_queue.time_limit(m_handler.options),
                    [this] { m_handler.call(job()); });
                settling().end(handling);
                if (settling().settled_at_once()) {
                    set_ended(handling.ended);
                }
            }
        } catch (...) {
            tell_thrown([this](std::string_view what) {
                settling().tell(WorkerEventKind::unsettled, what);
            });
        }
    }

  private:
    const Handler& m_handler;
    ServedQueue& m_queue;
    ServedQueue::Place m_place;
};

} // namespace orizuru::detail
