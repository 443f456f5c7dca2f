// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Shows what waits for its time in a queue, cancels it, or brings it to the queue at once: messages
// that were pushed for later (scheduler.hpp), jobs that are to be tried again.
//
// Needs msgpack-c, as it knows a unique job by its envelope.

#include <orizuru/codec.hpp>
#include <orizuru/connection.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/keys.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace orizuru {

/// One scheduled message.
struct ScheduledEntry {
    std::string payload; ///< bytes of the message, as they go to the queue
    /// Time at which it is due, by Redis' clock.
    JobTime due{};
    /// The element as Redis has it: it tells equal messages apart.
    std::string bytes;

    /// The job in the payload; nothing when that is no job's envelope.
    [[nodiscard]] std::optional<Job<Raw>> job() const;
};

/// Lists, cancels and runs a queue's scheduled messages: one connection, used by one thread at a
/// time.
///
/// Any number of them may work beside each other and beside schedulers: each step is one script, so
/// each entry goes one way, and a crash leaves it where it was or where it goes. All calls work
/// when Redis' memory is full. Each blocks at most command_timeout, and throws ConnectionError (in
/// doubt, a second call returns false when the first one has done it), ReplyError (it names the
/// key) and ProtocolError.
class ScheduledList {
  public:
    /// Connects. Throws as Producer's constructor does.
    ScheduledList(Endpoint endpoint, std::string queue);
    /// Uses a connection that other objects on the same thread use, too. Throws
    /// std::invalid_argument for null or an invalid name.
    ScheduledList(std::shared_ptr<Connection> connection, std::string queue);
    ScheduledList(const ScheduledList&) = delete;
    ScheduledList& operator=(const ScheduledList&) = delete;
    /// Takes over the connection; a call on the other one then throws std::logic_error.
    ScheduledList(ScheduledList&&) noexcept = default;
    /// Does the same, and gives up its own connection.
    ScheduledList& operator=(ScheduledList&&) noexcept = default;
    ~ScheduledList() = default;

    /// Returns how many there are. Redis: ZCARD, O(1).
    std::uint64_t size();

    /// Returns up to `count` entries, the first due first, after skipping `first` of them. Entries
    /// that come due leave at the front meanwhile: take the last page first to miss none. Redis:
    /// ZRANGE, O(log(n) + count). Throws std::invalid_argument for a negative number.
    std::vector<ScheduledEntry> list(std::int64_t first, std::int64_t count);

    /// Removes an entry; false when it has gone. A unique job releases its lock in the same step,
    /// as its ack would (unique.hpp). The lock stays if it lies in another slot of a Cluster, or is
    /// another queue's and the user has no right to it.
    /// Redis: ZREM, and GET and DEL of the lock, in one script, O(log(n)). Throws
    /// std::invalid_argument for a job that others of its key wait for (keyed.hpp):
    /// Inspector::remove brings the next one.
    bool cancel(const ScheduledEntry& entry);

    /// Puts an entry's payload on the queue now, behind all that waits there, as a push would;
    /// false when the entry has gone. A later enqueued_at of a job becomes now, by Redis' clock;
    /// without the right to TIME it stays.
    /// Redis: ZREM, TIME and LPUSH in one script, O(log(n)).
    bool run_now(const ScheduledEntry& entry);

  private:
    Keys m_keys;
    std::string m_scheduled;
    detail::Owned<std::shared_ptr<Connection>, "scheduled list"> m_connection;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/jobs/scheduled_list.ipp>
#endif
