// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Sends the messages of the outbox (outbox.hpp) to Redis, each queue's in the order of the commits,
// except those in no order. Any number of relays may run, on any host: each step is for one queue,
// whose row is locked, and which others skip meanwhile.
//
//   BEGIN ─► lock the queue ─► its next messages ─► LPUSH ─► DELETE ─► COMMIT
//                                                     └ a crash in between: sent again ┘
//
// A message is sent at least once, always with its id. One that is sent again may come behind later
// ones, but it was in front of them first. A relay that hangs in a step loses its session, and with
// it the queue: others send its messages then, and it sends them once more when it wakes. (While
// PostgreSQL sends it a step's messages over a Unix socket, PostgreSQL waits without an end.)

#include <orizuru/detail/base/config.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/outbox_relay_options.hpp>

#include <cstdint>
#include <memory>
#include <stop_token>

namespace orizuru {

namespace detail {
class OutboxRounds;
}

/// Sends the messages of all queues of an outbox: a connection to Redis, one to PostgreSQL, and
/// another one in `run`. Used by one thread at a time.
class OutboxRelay {
  public:
    /// Connects. Throws DatabaseError when PostgreSQL cannot be reached or refuses, SchemaError
    /// when tables or rights (TableUse::relay) are missing; ConnectionError and ReplyError as
    /// Connection does; std::invalid_argument for an option that cannot be.
    OutboxRelay(Database database, Endpoint redis, OutboxRelayOptions options = {});
    OutboxRelay(const OutboxRelay&) = delete;
    OutboxRelay& operator=(const OutboxRelay&) = delete;
    ~OutboxRelay();

    /// Sends all committed messages, except those of queues that other relays have in hand; returns
    /// how many.
    ///
    /// PostgreSQL: for a step 5 round trips; a queue's lock is held until its COMMIT, and the
    ///     session is ended when it waits in a step for 30 s, or twice as long as Redis may take.
    ///     For each round, in which each queue has a step, a look at which queues wait: a search of
    ///     an index for each.
    /// Redis: an LPUSH for a step; a PING when one fails.
    /// Blocks: for the statements, and at most connect_timeout and command_timeout for each LPUSH.
    /// Throws: ReplyError when Redis has refused a queue, the first ConnectionError, ProtocolError
    ///     or DatabaseError when a queue's step has failed: the messages of other queues are sent.
    ///     Stops at once when a server is away. Messages that are not sent, or in doubt, are still
    ///     in the outbox, and the next call sends them.
    std::uint64_t relay();

    /// Sends messages as they are committed, until a stop is requested: woken by NOTIFY, which
    /// needs a session of its own (no pool that shares sessions by transactions). A step that fails
    /// is reported to on_event and tried again after 5 s at most; a queue that fails holds up no
    /// other. The queues of a relay that died are served within 2 to 3 seconds.
    ///
    /// PostgreSQL: besides what `relay` does, five statements each time it falls asleep, and one
    ///     each second, so run a few of them, not one in each process. Before it sleeps it waits
    ///     for COMMITs of messages in no order under way, at most 100 ms, and looks twice a second
    ///     until longer ones are over.
    /// Blocks after a stop: for the step under way. Throws std::system_error when the process can
    /// have no more descriptors.
    void run(const std::stop_token& token);

  private:
    const std::unique_ptr<detail::OutboxRounds> m_rounds;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/postgres/outbox_relay.ipp>
#endif
