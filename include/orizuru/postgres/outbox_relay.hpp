// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Sends what transactions have left in the outbox (outbox.hpp) to Redis, each queue's messages in
// the order of the commits. Any number of relays may run, on any host: each step is one queue's,
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
#include <orizuru/postgres/outbox_relay_options.hpp>

#include <cstdint>
#include <memory>
#include <stop_token>

namespace orizuru {

namespace detail {
class OutboxRounds;
}

/// A relay for all queues of an outbox: a connection to Redis, one to PostgreSQL, and another one
/// in `run`. Used by one thread at a time.
class OutboxRelay {
  public:
    /// Connects. Throws DatabaseError when PostgreSQL cannot be reached or refuses, SchemaError
    /// when tables or rights (TableUse::relay) are missing; ConnectionError and ReplyError as
    /// Connection does; std::invalid_argument for an option that cannot be.
    OutboxRelay(Database database, Endpoint redis, OutboxRelayOptions options = {});
    OutboxRelay(const OutboxRelay&) = delete;
    OutboxRelay& operator=(const OutboxRelay&) = delete;
    ~OutboxRelay();

    /// Sends all that is committed, but for what other relays are at; returns how many messages.
    ///
    /// PostgreSQL: for a step 5 round trips; a queue's lock is held until its COMMIT, and the
    ///     session is ended when it waits in a step for 30 s, or twice as long as Redis may take.
    ///     A look at which queues wait, O(queues ever used), for each round of a step for each.
    ///     Redis: an LPUSH for a step; a PING when one fails.
    /// Blocks: for the statements, and at most connect_timeout and command_timeout for each LPUSH.
    /// Throws: ReplyError when Redis has refused a queue, the first ConnectionError, ProtocolError
    ///     or DatabaseError when a queue's step has failed: those of the others are sent. Without a
    ///     server nothing more is. What is not sent, or in doubt, is still in the outbox, and the
    ///     next call sends it.
    std::uint64_t relay();

    /// Sends what is committed when it is committed, until a stop is requested: woken by NOTIFY,
    /// which needs a session of its own (no pool that shares sessions by transactions).
    /// What fails is told to on_event and tried again, after 5 s at most; a queue that fails holds
    /// up no other. What a relay has left that died is looked for within a second.
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
