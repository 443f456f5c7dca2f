// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A limit that a queue has for all processes, as those see it who fetch and begin its jobs.

#include <orizuru/detail/base/clock.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace orizuru {
class Endpoint;
}

namespace orizuru::detail {

class FetchingQueue;
class Task;
class Wake;

/// Lets a task run, and counts it until this is destroyed. Any thread.
class Permit {
  public:
    Permit() = default;
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;
    virtual ~Permit() = default;

    /// Returns whether the handler may begin now.
    [[nodiscard]] virtual bool good() const noexcept = 0;
    /// The handler begins. A permit of which this is not said goes back.
    virtual void use() noexcept = 0;
};

class QueueLimit {
  public:
    enum class Jobs : std::uint8_t {
        to_fetch, ///< there may be none
        at_hand   ///< there are as many as are asked for
    };
    enum class Answer : std::uint8_t {
        here,    ///< ask what is granted, and ask anew
        awaited, ///< it has not come yet
        refused  ///< not now: it asks again, for jobs to fetch, when it makes sense
    };

    QueueLimit() = default;
    QueueLimit(const QueueLimit&) = delete;
    QueueLimit& operator=(const QueueLimit&) = delete;
    virtual ~QueueLimit() = default;

    /// The answer to the last question. `news` is signalled when it changes. Any thread.
    [[nodiscard]] virtual Answer answer() const noexcept = 0;
    /// False if more handlers may run elsewhere than there may be, besides one whose job was taken
    /// then: Redis had not heard from this process for the lease. Any thread.
    [[nodiscard]] virtual bool holds(TimePoint taken_at) const noexcept = 0;

    // For the thread that fetches. Only `await` waits for Redis.

    /// Asks how many tasks may run, up to `wanted`.
    virtual void ask(int wanted, Jobs jobs) noexcept = 0;
    /// Waits for the answer until then.
    virtual void await(TimePoint until) = 0;
    /// Tells once that the answer was: there is nothing to fetch.
    [[nodiscard]] virtual bool found_empty() noexcept = 0;
    /// Returns how many may be fetched.
    [[nodiscard]] virtual int granted() noexcept = 0;
    /// So many were fetched, and are at hand; the others of those that were granted go back.
    virtual void fetched(int tasks) noexcept = 0;
    /// Lets the next one of those run; false when there is none. Throws std::bad_alloc.
    [[nodiscard]] virtual bool permit(Task& task) = 0;
    /// Requeues a task that may not run now, on another thread. Throws std::bad_alloc.
    virtual void put_back(std::shared_ptr<Task> task) = 0;
    /// A wait in Redis for the next message has begun.
    virtual void begin_watch() noexcept = 0;
    /// It has ended, and none follows: others may have to wait for the message.
    virtual void end_watch() noexcept = 0;
    /// Forgets what was asked and granted.
    virtual void withdraw() noexcept = 0;

    /// Begins to tell Redis that all is over. Tasks that still run are counted for the lease.
    virtual void request_end() noexcept = 0;
    /// Waits for that until then.
    virtual void end(TimePoint until) noexcept = 0;
};

/// Connects to nothing yet. `news` is signalled when an answer comes. Throws std::system_error
/// without a free descriptor or thread.
using LimitMaker = std::function<std::unique_ptr<QueueLimit>(
    FetchingQueue& queue, const Endpoint& endpoint, std::shared_ptr<const Wake> news)>;

} // namespace orizuru::detail
