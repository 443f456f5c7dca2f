// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Messages for later: they wait in a sorted set of Redis, and a scheduler moves what is due to the
// queue. Any number of schedulers may run for a queue, on any host: each step is atomic, so that a
// crash at any moment neither loses a message nor doubles one. Redis' clock decides.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/scheduler_options.hpp>
#include <orizuru/producer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <vector>

namespace orizuru {

namespace detail {

class DueMessages;
class WakeLists;

template <class T>
void schedule(Producer<T>& producer, const T& message, const std::vector<std::string>& due) {
    producer.command("EVAL", schedule_script(), 4, schedule_keys(producer.keys()), due,
                     encoded(message, producer.options().max_payload));
}

} // namespace detail

/// Puts a message on the producer's queue at a time, by Redis' clock; at once when it is past.
/// Redis: one script, O(log(n)) of the scheduled messages.
/// Blocks and throws as Producer::push; std::invalid_argument for a time beyond the year 9999.
template <MessageEncodable T>
void push_at(Producer<T>& producer, JobTime time, const std::type_identity_t<T>& message) {
    detail::schedule(producer, message, detail::due_at(time));
}

/// Does the same after a time from now; at once when it is not positive.
template <MessageEncodable T>
void push_after(Producer<T>& producer, std::chrono::milliseconds delay,
                const std::type_identity_t<T>& message) {
    detail::schedule(producer, message, detail::due_after(delay));
}

/// Moves a queue's scheduled messages to the queue as they come due: two connections, used by one
/// thread at a time.
class Scheduler {
  public:
    /// Connects. Throws as Producer's constructor does; std::invalid_argument for a `poll` out of
    /// range.
    Scheduler(Endpoint endpoint, std::string queue, SchedulerOptions options = {});
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;
    /// Takes over both connections; a call on the other one then throws std::logic_error.
    Scheduler(Scheduler&&) noexcept;
    /// Closes its own connections and takes over those of the other one, as the constructor does.
    Scheduler& operator=(Scheduler&&) noexcept;
    ~Scheduler();

    /// Moves all due messages to the queue, in due order; returns how many.
    /// Redis: a script for each 100 of them or 1 MiB, at least one; O(log(n)) for each message.
    /// Atomic: each script.
    /// Blocks at most command_timeout per script. Throws ConnectionError, ReplyError,
    /// ProtocolError: moved messages stay moved.
    std::uint64_t move_due();

    /// Moves messages as they become due, until a stop is requested. Waits out outages of Redis.
    /// Throws ReplyError for what only a person can mend, std::system_error when the process can
    /// have no more descriptors.
    void run(const std::stop_token& token);

  private:
    detail::Owned<std::unique_ptr<detail::DueMessages>, "scheduler"> m_due;
    std::unique_ptr<detail::WakeLists> m_wake;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/jobs/scheduler.ipp>
#endif
