// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Shows a queue's dead list, puts its messages back on the queue, or removes them.
//
// The dead list has messages that were buried, that could not be decoded, and that killed the
// processes that handled them. Consumers and collectors write its entries: msgpack [2, payload,
// reason, milliseconds since 1970], the newest leftmost. An element that another program put there
// and that is no such entry is shown, and stays until it is purged or trimmed.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru {

/// One element of a dead list.
struct DeadEntry {
    std::string payload; ///< bytes of the message; empty if the element is no entry
    std::string reason;  ///< why it died; empty if nobody gave a reason
    /// Time at which it died, by Redis' clock.
    std::chrono::sys_time<std::chrono::milliseconds> time{};
    /// The element as Redis has it.
    std::string bytes;
    /// False for an element that is no entry: then it has nothing but bytes.
    bool readable = true;
};

/// Limits to which a dead list is trimmed.
struct DeadLimits {
    /// 0 = any number.
    std::int64_t most = 10'000;
    /// 0 = for ever.
    std::chrono::milliseconds oldest = std::chrono::hours(24 * 180);
};

namespace detail {

/// Throws std::invalid_argument.
void validate(const DeadLimits& limits);
/// Takes an element of the reply to list_dead_script. Throws ProtocolError for one of another
/// shape, and closes the connection.
[[nodiscard]] DeadEntry dead_entry_of(Connection& connection, Reply& element);

} // namespace detail

/// The result of redrive_all.
struct Redriven {
    std::uint64_t redriven = 0;   ///< entries whose payloads are back on the queue
    std::uint64_t unreadable = 0; ///< elements that are no entries: they have stayed

    /// True when both counts are equal.
    friend bool operator==(const Redriven&, const Redriven&) = default;
};

/// Lists, redrives and removes a queue's dead messages: one connection, used by one thread at a
/// time.
///
/// Any number of them may work on a list at once: each step is one script, so each entry is taken
/// once, and a crash leaves it where it was or where it goes. All calls work when Redis' memory is
/// full. Each script blocks at most command_timeout. All calls throw ConnectionError, ReplyError
/// (it names the key) and ProtocolError; completed steps stay done.
class DeadList {
  public:
    /// Connects. Throws as Producer's constructor does.
    DeadList(Endpoint endpoint, std::string queue);
    /// Uses a connection that other objects on the same thread use, too. Throws
    /// std::invalid_argument for null or an invalid name.
    DeadList(std::shared_ptr<Connection> connection, std::string queue);
    DeadList(const DeadList&) = delete;
    DeadList& operator=(const DeadList&) = delete;
    /// Takes over the connection; a call on the other one then throws std::logic_error.
    DeadList(DeadList&&) noexcept = default;
    /// Does the same, and gives up its own connection.
    DeadList& operator=(DeadList&&) noexcept = default;
    ~DeadList() = default;

    /// Returns how many elements it has. Redis: LLEN, O(1).
    std::uint64_t size();

    /// Returns up to `count` elements, the newest first, after skipping `first` of them.
    /// Redis: LRANGE in a script, O(first + count). Throws std::invalid_argument for a negative
    /// number.
    std::vector<DeadEntry> list(std::int64_t first, std::int64_t count);

    /// Puts an entry's payload back on the queue, behind all that waits there, as a push would;
    /// false when the entry has gone. Of equal entries one goes. A job's enqueued_at becomes now,
    /// by Redis' clock: it has not waited while it was dead; without the right to TIME it stays.
    /// Redis: LPOS, LREM, TIME and LPUSH in one script, O(20,000) at most. Throws
    /// std::invalid_argument, and does nothing, when it is not readable; ReplyError with the code
    /// FAR when it is not among the 10,000 elements at either end of a longer list.
    bool redrive(const DeadEntry& entry);

    /// Removes an element, readable or not; false when it has gone. A unique job releases its lock
    /// in the same step, as its ack would (unique.hpp). The lock stays if it lies in another slot
    /// of a Cluster, or is another queue's and the user has no right to it. Of equal elements one
    /// goes.
    /// Redis: LPOS and LREM, and GET and DEL of the lock, in one script, O(20,000) at most. Throws
    /// ReplyError with the code FAR as redrive does; std::invalid_argument for a job that others of
    /// its key wait for (keyed.hpp): Inspector::remove brings the next one.
    bool remove(const DeadEntry& entry);

    /// Redrives up to `limit` entries, the oldest first, as redrive(). Messages that die meanwhile
    /// stay, as long as nobody else takes any out. Redis: a script for each 100, or 4 MiB, which
    /// are one atomic step; O(1) for each entry, or O(n) of the unreadable elements that are older.
    Redriven redrive_all(std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

    /// Removes all there is, unreadable or not; returns how many. Unique jobs release their locks
    /// as in remove(), in the same step; without a right to the queue's own ones, a step is refused
    /// (NOPERM). Messages that die meanwhile stay, as long as nobody else takes any out.
    /// Redis: a script for each 1000, or 4 MiB, which are one atomic step: LRANGE for each element,
    /// GET and DEL for a lock, and LTRIM.
    std::uint64_t purge();

    /// Removes the entries that are at least `age` old by Redis' clock, and their locks as purge();
    /// returns how many. Looks at the oldest first, and ends at the first that is younger.
    /// Redis: as redrive_all, and GET and DEL for a lock. Throws std::invalid_argument for a
    /// negative time.
    std::uint64_t purge(std::chrono::milliseconds age);

    /// Removes what is over the limits: the oldest elements beyond `most`, readable or not, and
    /// entries as purge(oldest) does; returns how many. Their locks go as in purge().
    /// Redis: as purge() for those beyond `most`; then as purge(oldest).
    /// Throws std::invalid_argument for a negative limit.
    std::uint64_t trim(const DeadLimits& limits = {});

  private:
    static constexpr std::int64_t batch = 100;
    static constexpr std::uint64_t most_at_once = 1000;

    std::uint64_t count_of(const Reply& reply, std::string_view name);
    /// The result of a cut of the list.
    struct Cut {
        std::uint64_t gone;
        std::uint64_t over; ///< entries that are still to go
    };
    Cut cut_to(std::int64_t most, std::uint64_t at_once);
    Redriven take(std::uint64_t limit,
                  const std::function<Reply(std::uint64_t most, std::uint64_t passed)>& step);

    Keys m_keys;
    std::string m_dead;
    detail::Owned<std::shared_ptr<Connection>, "dead list"> m_connection;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/jobs/dead_list.ipp>
#endif
