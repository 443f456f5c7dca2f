// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job whose handler ends it later, by JobDone. It is run twice: a thread of the worker's pool
// calls the handler, and once the job has ended, another one settles it.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/worker/async/job_in_flight.hpp>
#include <orizuru/detail/worker/job_middleware.hpp>
#include <orizuru/detail/worker/job_task.hpp>
#include <orizuru/detail/worker/reports/observed_runs.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/settling/job_settling.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/job_done.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace orizuru::detail {

class AsyncJobTask : public JobTask,
                     public JobInFlight,
                     public UnendedRun,
                     public std::enable_shared_from_this<AsyncJobTask> {
  public:
    /// `handler` lives as long as the queue.
    AsyncJobTask(ServedQueue& queue, JobRun& run, const KindHandler& handler)
        : JobTask(queue, run, handler.options, JobSettling::Way::with_others),
          m_handler(handler),
          m_queue(queue.shared_from_this()),
          m_run(&run),
          m_place(std::in_place, queue) {}

    ORIZURU_INLINE Ran run(TimePoint ended) noexcept override;
    ORIZURU_INLINE void try_again() noexcept override;

    // By JobDone.

    ORIZURU_INLINE void end(std::exception_ptr error) noexcept override;
    ORIZURU_INLINE void leave_undone() noexcept override;
    [[nodiscard]] bool forked() const noexcept override {
        return m_queue->shared().process.forked();
    }

    void weigh(std::size_t bytes) noexcept override { m_place->weigh(bytes); }

    // By EndedJobs.

    ORIZURU_INLINE void begin_settling() noexcept override;
    void finish_settling() noexcept override { settling().finish(); }
    [[nodiscard]] bool needs_recoveries() const noexcept override {
        return m_failed && !settling().knows_recoveries();
    }
    void know(const JobRecoveries& recoveries) noexcept override { settling().know(recoveries); }
    void make_way() noexcept override {
        m_place.reset();
        end_permit();
    }

    std::optional<GuardCore::GivenUp> give_up(TimePoint until) noexcept override {
        make_way();
        return settling().requeue().begin(until);
    }
    void finish_requeue() noexcept override { settling().requeue().finish(); }

  private:
    struct End {
        std::exception_ptr error = {};
        bool undone = false;
        bool in_a_stop = false;
        TimePoint at{};
    };

    [[nodiscard]] bool begin_run();
    void settle();
    void settle_alone() noexcept;
    void end_part(End end) noexcept;
    void part_ends() noexcept;
    void end_run(const End& end) noexcept;
    void note_time(End& end) const noexcept {
        end.in_a_stop = m_queue->stop_token().stop_requested();
        end.at = Clock::now();
    }
    [[nodiscard]] bool exceeded(const End& end) const noexcept {
        return m_call && m_call->exceeded(end.at);
    }

    const KindHandler& m_handler;
    const std::shared_ptr<ServedQueue> m_queue; ///< JobDone may outlive the worker
    JobRun* const m_run;
    std::optional<ServedQueue::Place> m_place;
    bool m_begun = false;
    bool m_failed = false;
    std::optional<ObservedRuns> m_observed;
    std::optional<HandlerCall> m_call; ///< empty where there was no memory for it
    std::atomic<int> m_open_parts{2};
    Pace m_pace{}; ///< once it has ended
    End m_done;    ///< JobDone's
    End m_thrown;  ///< the handler's own, if it throws
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/worker/async/async_job_task.ipp>
#endif
