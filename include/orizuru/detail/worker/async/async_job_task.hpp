// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job whose handler ends it later, by JobDone. It is run twice: a thread of the worker's pool
// calls the handler, and once the job has ended, another one settles it.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/forked_child.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/worker/async/in_flight.hpp>
#include <orizuru/detail/worker/handling.hpp>
#include <orizuru/detail/worker/job_middleware.hpp>
#include <orizuru/detail/worker/job_settling.hpp>
#include <orizuru/detail/worker/job_task.hpp>
#include <orizuru/detail/worker/reports/observed_runs.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/job_done.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class AsyncJobTask : public JobTask,
                     public InFlight::Job,
                     public UnendedRun,
                     public std::enable_shared_from_this<AsyncJobTask> {
  public:
    /// `handler` lives as long as the queue.
    AsyncJobTask(ServedQueue& queue, JobRun& run, const KindHandler& handler)
        : JobTask(queue, run, handler.options, JobSettling::Acks::together),
          m_handler(handler),
          m_queue(queue.shared_from_this()),
          m_run(&run),
          m_place(queue) {}

    Ran run(TimePoint ended) noexcept override {
        try {
            if (m_begun) {
                settle();
            } else if (settling().begin(ended)) {
                m_begun = true;
                begin();
                return {}; // from now on it is for the thread that settles it
            }
        } catch (...) {
            tell_thrown([this](std::string_view what) {
                settling().tell(WorkerEventKind::unsettled, what);
            });
        }
        return {retry_at().has_value()};
    }

    // By JobDone.

    void end(std::exception_ptr error) noexcept override {
        m_done = {std::move(error), Clock::now()};
        part_ends();
    }
    void leave_undone() noexcept override {
        m_done = {nullptr, Clock::now(), true};
        part_ends();
    }
    [[nodiscard]] bool forked() const noexcept override {
        return m_queue->shared().process.forked();
    }

    std::optional<GuardCore::GivenUp> give_up(TimePoint until) noexcept override {
        std::optional<GuardCore::GivenUp> given = settling().give_up(until);
        if (given && m_observed) {
            m_observed->end({});
        }
        return given;
    }

  private:
    struct End {
        std::exception_ptr error = {};
        TimePoint at{};
        bool undone = false;
    };

    void begin();
    void settle();
    /// Ends the run when both the handler has returned and JobDone was called.
    void part_ends() noexcept {
        if (m_open_parts.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            end_run(m_done);
        }
    }
    void end_run(const End& end) noexcept {
        const bool succeeded =
            !end.error && !end.undone && !job().failure() && !m_call->exceeded(end.at);
        end_handling();
        m_queue->in_flight()->end(*this, succeeded && settling().succeeds_at_once()
                                             ? InFlight::Pace::at_once
                                             : InFlight::Pace::by_redis);
    }

    const KindHandler& m_handler;
    const std::shared_ptr<ServedQueue> m_queue; ///< JobDone may outlive the worker
    JobRun* const m_run;
    ServedQueue::Place m_place;
    bool m_begun = false;
    std::optional<ObservedRuns> m_observed;
    std::optional<HandlerCall> m_call;
    std::atomic<int> m_open_parts{2};
    End m_done;   ///< JobDone's
    End m_thrown; ///< the handler's own, if it throws
};

inline void AsyncJobTask::begin() {
    WorkerShared& shared = m_queue->shared();
    const std::shared_ptr<AsyncJobTask> self = shared_from_this(); // JobDone may let go of it
    m_observed.emplace(shared, std::span(&m_run, 1));
    m_call.emplace(shared, std::span(&m_run, 1), m_queue->time_limit(m_handler.options));
    JobDone done(self);
    begin_handling();
    if (!m_queue->in_flight()->add(*this, self)) {
        Handling requeued;
        requeued.interrupted = true; // the worker shuts down, and requeues what its threads have
        m_observed->end(requeued);
        return;
    }
    try {
        const EndOfForks end(shared.process);
        m_handler.call(*m_run, std::move(done));
    } catch (...) {
        m_thrown = {std::current_exception(), Clock::now()};
        m_open_parts = 0; // JobDone has no effect
        end_run(m_thrown);
        return;
    }
    part_ends();
}

inline void AsyncJobTask::settle() {
    const End& end = m_thrown.error ? m_thrown : m_done;
    const bool undone = end.undone && !m_call->exceeded(end.at);
    m_call->end(end.at);
    Handling handling = end.error ? HandlerCall::failed(*m_run, end.error) : Handling();
    handling.interrupted = handling.interrupted || undone;
    handling.ended = end.at;
    m_observed->end(handling);
    settling().end(handling);
}

} // namespace orizuru::detail
