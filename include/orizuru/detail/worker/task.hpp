// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A task for one of the worker's threads: a job or a batch of jobs.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/worker/job_middleware.hpp>
#include <orizuru/detail/worker/limits/queue_limit.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/worker/job_context.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class ParkedTasks;
class ServedQueue;

class Task {
  public:
    Task() = default;
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    virtual ~Task() = default;

    /// The result of a run, for its thread: the task itself may run on elsewhere.
    struct Ran {
        bool unsettled = false; ///< park it: a settlement is to be repeated at retry_at()
        bool settling = false;  ///< call finish(): a settlement has begun; not unsettled yet
        /// The end of the run, if nothing was waited for since then; else TimePoint(). A clock
        /// costs as much as all else that is counted of a job, so the next run begins then.
        TimePoint ended{};
    };
    /// Handles the job and settles it. `ended`: that of the run before it on this thread.
    virtual Ran run(TimePoint ended) noexcept = 0;
    /// Waits for the end of a settlement that `run` has begun. Returns whether to park the task.
    virtual bool finish() noexcept { return false; }
    /// Returns when to repeat a settlement that Redis refused or that ran out of memory; empty when
    /// there is none to repeat. For the thread inside `run` or `try_again`, or who parks the task.
    [[nodiscard]] virtual std::optional<TimePoint> retry_at() const noexcept = 0;
    virtual void try_again() noexcept = 0;
    /// Requeues the job at the queue's serving end, unless it is settled; also while it runs. Waits
    /// up to `patience` for a guard that a running handler or a settlement holds.
    virtual void requeue(std::chrono::milliseconds patience) noexcept = 0;
    [[nodiscard]] virtual const JobRun& job() const noexcept = 0;
    /// Calls `take` with each job that it handles.
    virtual void each_job(FunctionRef<void(const JobRun&)> take) const { take(job()); }
    /// Requests that the job with this id stop, if it is this task's. Any thread.
    virtual void cancel(std::string_view job_id, std::string_view reason) = 0;

    /// Before it runs: by this it may, in a queue with a limit.
    void keep(std::unique_ptr<Permit> permit) noexcept { m_permit = std::move(permit); }
    /// True while the user's handler or a middleware around it runs. Any thread.
    [[nodiscard]] bool handling() const noexcept {
        return m_handling.load(std::memory_order_relaxed);
    }

  protected:
    void begin_handling() noexcept {
        if (m_permit) {
            m_permit->use();
        }
        m_handling.store(true, std::memory_order_relaxed);
    }
    void end_handling() noexcept { m_handling.store(false, std::memory_order_relaxed); }
    [[nodiscard]] bool permitted() const noexcept { return !m_permit || m_permit->good(); }
    /// The handler has ended. For the thread that settles.
    void end_permit() noexcept { m_permit.reset(); }
    /// Runs the handler of these jobs in its middleware, on the thread inside `run`.
    template <class Handle>
    Handling handle_in_middleware(WorkerShared& shared, std::span<JobRun* const> jobs,
                                  std::optional<std::chrono::milliseconds> time_limit,
                                  const Handle& handle) {
        begin_handling();
        const auto end = at_exit([this] { end_handling(); });
        return detail::handle_in_middleware(shared, jobs, time_limit, handle);
    }

  private:
    friend class ParkedTasks;

    std::shared_ptr<Task> m_next_parked;
    std::unique_ptr<Permit> m_permit;
    std::atomic<bool> m_handling{false};
};

/// Returns the tasks of a queue that run. Any thread.
using RunningTasks = std::function<std::vector<std::shared_ptr<Task>>(const ServedQueue&)>;

} // namespace orizuru::detail
