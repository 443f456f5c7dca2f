// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Looks into queues of any programs: numbers, consumers and messages, wherever these are.
// Removes single messages, and has them served now.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/redis/queue_connections.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/ops/queue_counts.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

/// For one thread at a time: one connection, in a Cluster one for each slot, made when it is
/// needed.
///
/// Reading needs no right to write: a user with `+@read +eval_ro` and a replica suffice, but for
/// the clock, which needs TIME. Each step is one script, so a message is in exactly one place, and
/// what a consumer holds is never touched. All calls block at most connect_timeout and
/// command_timeout, and throw std::invalid_argument for an impossible queue name, ConnectionError,
/// ReplyError (it names the key) and ProtocolError.
class Inspector {
  public:
    /// Does not connect yet.
    explicit Inspector(Endpoint endpoint) : m_connections(std::move(endpoint)) {}

    /// The queues that workers serve or have served, sorted: each worker adds its own when it
    /// starts, and every 10 minutes. Redis: SMEMBERS, O(queues).
    [[nodiscard]] std::vector<std::string> queues();
    /// Takes a queue off that list, until a worker serves it; false when it is not there. Nothing
    /// else changes. Redis: SREM, O(1).
    bool forget(const std::string& queue);

    /// The numbers of a queue; zeros for one that does not exist, and for a retired shard. Redis: a
    /// script, O(consumers), and TIME.
    [[nodiscard]] QueueState state(const std::string& queue);

    /// The registered consumers, by their ids. Redis: O(consumers).
    [[nodiscard]] std::vector<ConsumerState> consumers(const std::string& queue);

    /// What workers have reported of the queue's jobs since ever; they do so every 5 s and when
    /// they stop. Jobs that a plain consumer takes are not in it. Redis: HGETALL, O(1).
    [[nodiscard]] QueueStatistics counts(const std::string& queue);
    /// The outcomes of the last `count` days, 90 at most, the oldest first and today's last, with
    /// zeros for a day without any. Redis: a script, O(count), and TIME. Throws
    /// std::invalid_argument for a negative number, too.
    [[nodiscard]] std::vector<DayCounts> days(const std::string& queue, int count);
    /// The last reports of the workers that have a consumer of the queue, by its id. One that was
    /// just started has none for 5 s, one unheard for 15 s none any more; a paused queue has no
    /// consumers. Redis: a script, O(consumers).
    [[nodiscard]] std::vector<WorkerReport> workers(const std::string& queue);

    /// Up to `count` messages of a place, from the one that `first` others precede: those that are
    /// served next come first, of rejected ones those that were rejected first, of the dead the
    /// newest. Payloads come whole. Redis: O(first + count), for held ones
    /// O(consumers + count). Throws std::invalid_argument for a negative number, too.
    [[nodiscard]] std::vector<PlacedMessage> peek(const std::string& queue, Place place,
                                                  std::int64_t first, std::int64_t count);

    /// Removes a message; false when it has gone from its place. A unique job releases its own lock
    /// in the same step. Of equal ones one goes. Redis: as DeadList::remove and
    /// ScheduledList::cancel, with the same error FAR. Throws std::invalid_argument for a held one.
    bool remove(const std::string& queue, const PlacedMessage& message);

    /// Has a message served before all others, if it waits, or behind all that wait, as a push
    /// would; false when it has gone from its place. Of equal ones one goes. Redis: as
    /// DeadList::redrive and ScheduledList::run_now. Throws as remove does,
    /// and std::invalid_argument for a dead element that is no entry.
    bool run_now(const std::string& queue, const PlacedMessage& message);

  private:
    [[nodiscard]] std::vector<PlacedMessage> peek_list(const Keys& keys, Place place,
                                                       std::int64_t first, std::int64_t count);
    [[nodiscard]] std::vector<PlacedMessage> peek_held(const Keys& keys, std::int64_t first,
                                                       std::int64_t count);

    detail::QueueConnections m_connections;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/inspector.ipp>
#include <orizuru/ops/inspector_counts.ipp>
#endif
