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
          m_place(std::in_place, queue) {}

    Ran run(TimePoint ended) noexcept override {
        try {
            if (m_begun) {
                settle();
                make_way_if_alone();
            } else if (settling().begin(ended)) {
                m_begun = true;
                if (begin()) {
                    return {}; // from now on it is for the thread that settles it
                }
            }
        } catch (...) {
            tell_thrown([this](std::string_view what) {
                settling().tell(WorkerEventKind::unsettled, what);
            });
        }
        return {retry_at().has_value()};
    }
    void try_again() noexcept override {
        JobTask::try_again();
        make_way_if_alone();
    }
    void make_way() noexcept override { m_place.reset(); }

    // By JobDone.

    void end(std::exception_ptr error) noexcept override { end_part({std::move(error)}); }
    void leave_undone() noexcept override { end_part({{}, true}); }
    [[nodiscard]] bool forked() const noexcept override {
        return m_queue->shared().process.forked();
    }

    std::optional<GuardCore::GivenUp> give_up(TimePoint until) noexcept override {
        m_place.reset();
        return settling().give_up(until);
    }

  private:
    struct End {
        std::exception_ptr error = {};
        bool undone = false;
        bool in_a_stop = false;
        TimePoint at{};
    };

    [[nodiscard]] bool begin();
    void settle();
    /// For a job that is settled by itself; EndedJobs knows when those acked together are done.
    void make_way_if_alone() noexcept {
        if (m_pace == InFlight::Pace::by_redis && !retry_at()) {
            make_way();
        }
    }
    void end_part(End end) noexcept {
        m_done = std::move(end);
        note_time(m_done);
        part_ends();
    }
    void note_time(End& end) const noexcept {
        end.in_a_stop = m_queue->stop_token().stop_requested();
        end.at = Clock::now();
    }
    /// Ends the run when both the handler has returned and JobDone was called.
    void part_ends() noexcept {
        if (m_open_parts.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            end_run(m_done);
        }
    }
    void end_run(const End& end) noexcept;
    [[nodiscard]] bool exceeded(const End& end) const noexcept {
        return m_call && m_call->exceeded(end.at);
    }

    const KindHandler& m_handler;
    const std::shared_ptr<ServedQueue> m_queue; ///< JobDone may outlive the worker
    JobRun* const m_run;
    std::optional<ServedQueue::Place> m_place;
    bool m_begun = false;
    std::optional<ObservedRuns> m_observed;
    std::optional<HandlerCall> m_call; ///< empty where there was no memory for it
    std::atomic<int> m_open_parts{2};
    InFlight::Pace m_pace{}; ///< once it has ended
    End m_done;              ///< JobDone's
    End m_thrown;            ///< the handler's own, if it throws
};

/// Returns false when the worker shuts down, and the job was requeued instead.
inline bool AsyncJobTask::begin() {
    WorkerShared& shared = m_queue->shared();
    const std::shared_ptr<AsyncJobTask> self = shared_from_this(); // JobDone may let go of it
    JobDone done(self);
    begin_handling();
    m_observed.emplace(shared, std::span(&m_run, 1));
    if (!m_queue->in_flight()->add(*this, self)) {
        Handling undone;
        undone.interrupted = true;
        m_observed->end(undone);
        end_handling();
        settling().end(undone);
        return false;
    }
    try {
        m_call.emplace(shared, std::span(&m_run, 1), m_queue->time_limit(m_handler.options));
        const EndOfForks end(shared.process);
        m_handler.call(*m_run, std::move(done));
    } catch (...) {
        m_thrown.error = std::current_exception();
        note_time(m_thrown);
        m_open_parts = 0; // JobDone has no effect
        end_run(m_thrown);
        return true;
    }
    part_ends();
    return true;
}

inline void AsyncJobTask::end_run(const End& end) noexcept {
    end_handling();
    const bool succeeded = !end.error && !end.undone && !job().failure() && !exceeded(end);
    m_pace = succeeded && settling().succeeds_at_once() ? InFlight::Pace::at_once
                                                        : InFlight::Pace::by_redis;
    if (!m_queue->in_flight()->end(*this, m_pace)) {
        // A stop has given the job up. Only now does nobody use its context any more.
        m_observed->end({});
    }
}

inline void AsyncJobTask::settle() {
    const End& end = m_thrown.error ? m_thrown : m_done;
    const bool undone = end.undone && !exceeded(end);
    if (m_call) {
        m_call->end(end.at);
    }
    Handling handling = end.error ? HandlerCall::failed(*m_run, end.error) : Handling();
    handling.interrupted = (handling.interrupted && end.in_a_stop) || undone;
    if (undone) {
        handling.thrown = "left undone"; // for a job that was acked before
    }
    handling.ended = end.at;
    m_observed->end(handling);
    settling().end(handling);
}

} // namespace orizuru::detail
