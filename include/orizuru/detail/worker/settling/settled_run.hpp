// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The parts of a JobRun that the settling of its job needs.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/worker/stops/run_stop.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/worker/job_context.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

namespace orizuru::detail {

/// A reference: its copies are of the same run, which outlives them.
class SettledRun {
  public:
    using By = JobRun::SettledBy;
    using Stage = JobRun::Stage;

    /// The job's guard, locked against other threads.
    class Guard {
      public:
        /// False if another thread has held it for too long: then it has no guard.
        explicit operator bool() const noexcept { return m_lock.owns_lock(); }
        [[nodiscard]] GuardCore& operator*() const noexcept { return *m_run.m_core; }
        [[nodiscard]] GuardCore* operator->() const noexcept { return m_run.m_core; }
        /// Says who has settled it. Once it is settled.
        [[nodiscard]] By settler() const noexcept { return m_run.m_settler; }
        /// Says who is about to settle it.
        void name_settler(By settler) const noexcept { m_run.m_settler = settler; }

      private:
        friend class SettledRun;
        Guard(JobRun& run, JobRun::Lock lock) : m_run(run), m_lock(std::move(lock)) {}

        JobRun& m_run;
        JobRun::Lock m_lock;
    };

    explicit SettledRun(JobRun& run) noexcept : m_run(&run) {}

    [[nodiscard]] JobRun& run() const noexcept { return *m_run; }
    [[nodiscard]] const JobHead& head() const noexcept { return m_run->m_head; }
    [[nodiscard]] OrderedJob ordered() const noexcept { return {head().key, head().ticket}; }
    [[nodiscard]] RunStop& stop() const noexcept { return m_run->m_stop; }
    [[nodiscard]] Stage stage() const noexcept { return m_run->m_stage; }
    void note_begin(TimePoint now) const noexcept {
        m_run->m_since.store(now, std::memory_order_relaxed);
    }

    [[nodiscard]] Guard guard() const { return {*m_run, m_run->lock_guard()}; }
    [[nodiscard]] Guard guard_within(std::chrono::milliseconds patience) const {
        return {*m_run, m_run->lock_guard_within(patience)};
    }
    /// Locks the guard.
    [[nodiscard]] By settled_by() const { return m_run->settled_by(); }

    /// Any thread. Empty if the run has changed none.
    [[nodiscard]] std::optional<JobAttributes> changed_attributes() const {
        return m_run->changed_attributes();
    }
    /// Once the handler has ended. Null if the run has changed none.
    [[nodiscard]] const JobAttributes* changed() const noexcept {
        return m_run->m_attributes_changed ? &head().attributes : nullptr;
    }

  private:
    JobRun* m_run;
};

} // namespace orizuru::detail
