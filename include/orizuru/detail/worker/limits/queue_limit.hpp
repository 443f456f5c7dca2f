// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A limit that a queue has for all processes, as those see it who fetch and begin its jobs.

#include <orizuru/detail/base/clock.hpp>

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
    QueueLimit() = default;
    QueueLimit(const QueueLimit&) = delete;
    QueueLimit& operator=(const QueueLimit&) = delete;
    virtual ~QueueLimit() = default;

    /// False while the answer to a question is awaited: nothing may be fetched. `news` is signalled
    /// when it comes. Any thread.
    [[nodiscard]] virtual bool answered() const noexcept = 0;
    /// False when more handlers may run elsewhere than there may be: Redis has not heard from this
    /// process for the lease. Any thread.
    [[nodiscard]] virtual bool holds() const noexcept = 0;

    // For the thread that fetches. None of these waits for Redis.

    /// Asks how many tasks may run, up to `wanted`; not if the last answer was that there is
    /// nothing to fetch, once.
    virtual void ask(int wanted) noexcept = 0;
    /// Returns how many may be fetched.
    [[nodiscard]] virtual int granted() = 0;
    /// So many were fetched; the others of those that were granted go back.
    virtual void fetched(int tasks) noexcept = 0;
    /// Lets the next one of those run; false when there is none. Throws std::bad_alloc.
    [[nodiscard]] virtual bool permit(Task& task) = 0;
    /// Asks whether this one may run, which a wait in Redis has brought. It is requeued if not.
    /// Throws std::bad_alloc.
    virtual void ask_for(std::shared_ptr<Task> task) = 0;
    /// Returns one that may.
    [[nodiscard]] virtual std::shared_ptr<Task> take_permitted() noexcept = 0;
    /// Requeues a task that no thread is free for, if there is one. Nobody here waits for a message
    /// any more: others may have to.
    virtual void leave(std::shared_ptr<Task> task) = 0;
    /// Forgets what was asked, and requeues what was brought.
    virtual void withdraw() noexcept = 0;

    /// Tells Redis that all is over, until then. Tasks that still run are counted for the lease.
    virtual void end(TimePoint until) noexcept = 0;
};

/// Connects to nothing yet. `news` is signalled when an answer comes. Throws std::system_error
/// without a free descriptor or thread.
using LimitMaker = std::function<std::unique_ptr<QueueLimit>(
    FetchingQueue& queue, const Endpoint& endpoint, std::shared_ptr<const Wake> news)>;

} // namespace orizuru::detail
