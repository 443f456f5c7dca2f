// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tells a worker's observers of the begin and the end of runs.

#include <orizuru/detail/base/forked_child.hpp>
#include <orizuru/detail/worker/handling.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/job_observer.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Never throws.
class ObservedRuns {
  public:
    /// These runs begin.
    ObservedRuns(const WorkerShared& shared, std::span<JobRun* const> jobs) noexcept
        : m_shared(shared) {
        for (const JobObserver& observer : shared.options.observers) {
            for (JobRun* const job : jobs) {
                begin(observer, *job);
            }
        }
    }

    /// They have ended, and are not settled yet. Once.
    void end(const Handling& handling) noexcept {
        while (!m_runs.empty()) { // as middleware would: who was first hears of it last
            tell(m_runs.back(), handling);
            m_runs.pop_back();
        }
    }

  private:
    struct Run {
        const JobRun* job;
        std::function<void(const JobEnd&)> at_end;
    };
    struct End {
        JobEnd::Outcome outcome;
        std::string why = {};
    };

    [[gnu::cold]] void begin(const JobObserver& observer, JobRun& job) noexcept {
        try {
            const EndOfForks end(m_shared.process);
            m_runs.push_back({&job, {}}); // first: what begins has to end
            m_runs.back().at_end = observer(job);
        } catch (...) { // NOLINT(bugprone-empty-catch)
            // No job fails for want of somebody who looks on.
        }
    }
    [[gnu::cold]] void tell(const Run& run, const Handling& handling) const noexcept {
        if (!run.at_end) {
            return;
        }
        try {
            const EndOfForks fork(m_shared.process);
            const End end = end_of(*run.job, handling);
            run.at_end({end.outcome, end.why});
        } catch (...) { // NOLINT(bugprone-empty-catch)
        }
    }
    /// As JobSettling will see it.
    [[nodiscard]] [[gnu::cold]] static End end_of(const JobRun& job, const Handling& handling) {
        using SettledBy = JobRun::SettledBy;
        const auto lock = job.lock_guard();
        const SettledBy by = job.settled_by();
        if (by == SettledBy::requeuing) {
            return {JobEnd::Outcome::requeued};
        }
        const bool interrupted =
            handling.interrupted && !job.failure() && !job.m_stop.is_cancelled();
        if (by == SettledBy::nobody && interrupted) {
            return {JobEnd::Outcome::requeued};
        }
        if (auto why = failure_of(job, handling)) {
            return {JobEnd::Outcome::failed, std::move(*why)};
        }
        if (by == SettledBy::handler) {
            const std::string* const burial = job.m_core->buried();
            return burial != nullptr ? End{JobEnd::Outcome::buried, *burial}
                                     : End{JobEnd::Outcome::settled};
        }
        if (job.m_stage == JobRun::Stage::before) {
            return {JobEnd::Outcome::failed, "a middleware has not called next"};
        }
        return {JobEnd::Outcome::done};
    }
    [[nodiscard]] static std::optional<std::string> failure_of(const JobRun& job,
                                                               const Handling& handling) {
        std::optional<std::string> why = job.failure() ? job.failure() : handling.thrown;
        if (job.m_stage == JobRun::Stage::out_of_time) {
            why = "the time limit is over" + (why ? ": " + *why : "");
        }
        if (!why && handling.interrupted) {
            why = "left undone";
        }
        return why;
    }

    const WorkerShared& m_shared;
    std::vector<Run> m_runs;
};

} // namespace orizuru::detail
