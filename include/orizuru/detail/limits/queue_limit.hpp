// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A limit that a queue has over all processes, as those who fetch and begin its jobs see it.

#include <orizuru/detail/base/clock.hpp>

#include <cstdint>

namespace orizuru::detail {

class QueueLimit {
  public:
    /// Tells whether there are jobs to admit.
    enum class Jobs : std::uint8_t {
        unfetched, ///< there may be none
        at_hand    ///< there is one, which was not admitted
    };
    struct Admission {
        int most = 0;       ///< number of jobs that may be fetched now
        TimePoint again{};  ///< with none: when to ask again
        bool empty = false; ///< with none: because the queue is empty
    };

    QueueLimit() = default;
    QueueLimit(const QueueLimit&) = delete;
    QueueLimit& operator=(const QueueLimit&) = delete;
    virtual ~QueueLimit() = default;

    // For the thread that fetches.

    /// Asks for as many as `wanted`. Blocks and throws as Connection::command.
    [[nodiscard]] virtual Admission admit(Jobs jobs, int wanted) = 0;
    /// So many of those that were admitted have been fetched.
    virtual void fetched(int jobs) noexcept = 0;

    // Any thread.

    /// Returns whether a job may begin now, and counts it if so.
    [[nodiscard]] virtual bool begin() noexcept = 0;
    /// From now on `admit` throws where it would wait for Redis.
    virtual void cut_off() noexcept = 0;
};

} // namespace orizuru::detail
