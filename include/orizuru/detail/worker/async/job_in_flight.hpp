// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job that may be in flight, as the list of those sees it.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>

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

    /// See JobSettling::give_up.
    virtual std::optional<GuardCore::GivenUp> give_up(TimePoint until) noexcept = 0;

  protected:
    JobInFlight() = default;
    ~JobInFlight() = default;

  private:
    friend class InFlight;

    /// The task that is or has this, while it is in a list: a circle, which InFlight breaks when
    /// the job is settled or given up.
    std::shared_ptr<Task> m_task;
};

} // namespace orizuru::detail
