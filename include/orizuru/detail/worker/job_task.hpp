// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job that is a task of its own, and one with a handler.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/settling/job_settling.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/job_done.hpp>
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
    bool finish() noexcept override {
        m_settling.finish();
        return retry_at().has_value();
    }
    void try_again() noexcept override {
        m_settling.try_again();
        m_settling.finish();
    }
    void requeue(std::chrono::milliseconds patience) noexcept override {
        m_settling.requeue().run(patience);
    }
    [[nodiscard]] const JobRun& job() const noexcept override { return m_run; }
    void cancel(std::string_view job_id, std::string_view reason) override {
        if (m_run.id() == job_id) {
            m_run.m_stop.cancel(reason);
        }
    }
    [[nodiscard]] JobRun& job() noexcept { return m_run; }
    /// Once: its payload has this size.
    virtual void weigh(std::size_t /*bytes*/) noexcept {}

  protected:
    JobTask(ServedQueue& queue, JobRun& run) : m_run(run), m_settling(queue, run) {}
    /// `kind` lives as long as the queue.
    JobTask(ServedQueue& queue, JobRun& run, const KindOptions& kind,
            JobSettling::Way way = JobSettling::Way::alone)
        : m_run(run), m_settling(queue, run, kind, way) {}

    /// As JobSettling::begin; a job that begins too late for its permit goes back.
    [[nodiscard]] bool begin(TimePoint ended) noexcept {
        if (permitted()) {
            return m_settling.begin(ended);
        }
        m_settling.go_back("it begins too late for the limit of its queue");
        return false;
    }
    [[nodiscard]] JobSettling& settling() noexcept { return m_settling; }
    [[nodiscard]] const JobSettling& settling() const noexcept { return m_settling; }

  private:
    JobRun& m_run;
    JobSettling m_settling;
};

/// Calls the handler of a job's kind; one that ends later gets a JobDone.
using JobCall = std::function<void(JobRun&, JobDone)>;

/// The handler of a kind of jobs.
struct KindHandler {
    JobCall call;
    KindOptions options;
};

class HandledJob : public JobTask {
  public:
    /// `handler` outlives the task, as `queue` does.
    HandledJob(ServedQueue& queue, JobRun& run, const KindHandler& handler)
        : JobTask(queue, run, handler.options, JobSettling::Way::with_next),
          m_handler(handler),
          m_queue(queue),
          m_place(std::in_place, queue) {}

    Ran run(TimePoint ended) noexcept override {
        TimePoint now{};
        try {
            if (begin(ended)) {
                JobRun* const run = &job();
                const Handling handling = handle_in_middleware(
                    m_queue.shared(), {&run, 1}, m_queue.time_limit(m_handler.options),
                    [this] { m_handler.call(job(), JobDone()); });
                settling().end(handling);
                if (settling().settled_at_once()) {
                    now = handling.ended;
                }
            }
        } catch (...) {
            tell_thrown([this](std::string_view what) {
                settling().reports().tell(WorkerEventKind::unsettled, what);
            });
        }
        // Before the thread asks for its next job.
        m_place.reset();
        end_permit();
        return {retry_at().has_value(), settling().goes_on(), now};
    }

  private:
    const KindHandler& m_handler;
    ServedQueue& m_queue;
    std::optional<ServedQueue::Place> m_place; ///< until `run` has ended
};

} // namespace orizuru::detail
