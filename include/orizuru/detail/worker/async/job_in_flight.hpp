// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job that may be in flight, as the list of those sees it.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/redis/scripts/recovery_counts.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace orizuru::detail {

class InFlight;
class Task;

class JobInFlight : public Linked {
  public:
    /// Tells whether to settle it, once it has ended, needs a round trip of its own.
    enum class Pace : std::uint8_t { at_once, by_redis };

    // Once it has ended, for EndedJobs.

    /// Settles the job, or what was postponed of that, and only begins what waits for Redis:
    /// finish_settling() waits for it.
    virtual void begin_settling() noexcept = 0;
    virtual void finish_settling() noexcept = 0;
    /// See JobSettling::know.
    [[nodiscard]] virtual bool needs_recoveries() const noexcept = 0;
    virtual void know(const JobRecoveries& recoveries) noexcept = 0;
    /// It is settled: gives its place to others, though somebody may keep the task.
    virtual void make_way() noexcept = 0;

    /// See JobRequeue::begin.
    virtual std::optional<GuardCore::GivenUp> give_up(TimePoint until) noexcept = 0;
    virtual void finish_requeue() noexcept = 0;

  protected:
    JobInFlight() = default;
    virtual ~JobInFlight() = default;

  private:
    friend class InFlight;

    /// The task that is or has this, while it is in a list: a circle, which InFlight breaks when
    /// the job is settled or given up.
    std::shared_ptr<Task> m_task;
};

} // namespace orizuru::detail
