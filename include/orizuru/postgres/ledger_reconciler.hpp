// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Makes Redis follow the ledger. Each pending job gets its message; so do failed jobs when they are
// due, and running jobs when their lease has ended. All of them get it again when Redis was lost or
// went back in time, or PostgreSQL was replaced by a standby or from a backup. Any number may run,
// on any host: each step is one transaction for one queue, and one sending in it. After a crash
// between the sending and the COMMIT, messages are sent again; the ledger runs a job once all the
// same.
//
// In each sweep it looks for single messages that were lost. It sends a pending job again when the
// message was sent longer ago than a sweep, and the source list is empty or serves next a job that
// was submitted after that sending. So it finds a message that was removed by DEL, but also resends
// one that a consumer has held for so long without a claim, or has put off. Therefore the time
// doubles with each sending until the job is claimed, up to an hour, or a sweep when that is
// longer.
//
// A pending job whose message was buried (it could not be decoded, PostgreSQL was away in all tries
// of a Worker, its processes died before they had claimed the job) has failed with the entry's
// reason, in a try of its own: it is tried again later, or dead. When several messages of one try
// are buried, the first counts. The entry stays on the dead list.
//
// If you put PostgreSQL's files back from a copy without a recovery, remove the queue's key
// `ledger` in Redis, too (keys.hpp).

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger_reconciler_options.hpp>

#include <memory>
#include <stop_token>

namespace orizuru {

namespace detail {
class LedgerReconciliation;
}

/// Makes Redis follow the ledgers of one database, for all queues: three connections, used by one
/// thread at a time.
class LedgerReconciler {
  public:
    /// Connects to both. Throws DatabaseError when PostgreSQL cannot be reached or refuses,
    /// SchemaError when tables or rights are missing, what Connection's constructor throws, and
    /// std::invalid_argument for options that cannot be.
    LedgerReconciler(Database database, Endpoint redis, LedgerReconcilerOptions options = {});
    LedgerReconciler(const LedgerReconciler&) = delete;
    LedgerReconciler& operator=(const LedgerReconciler&) = delete;
    /// Takes over the connections; a call on the other one then throws std::logic_error.
    LedgerReconciler(LedgerReconciler&&) noexcept;
    /// Closes its own connections and takes over those of the other one, as the constructor does.
    LedgerReconciler& operator=(LedgerReconciler&&) noexcept;
    ~LedgerReconciler();

    /// Makes one pass: does all work that is due, queue by queue, except for queues that another
    /// reconciler has in hand.
    /// PostgreSQL: for each queue a transaction for up to a thousand jobs or 1 MiB, at least one.
    ///     It locks the queue's row, and does not wait for that.
    /// Redis: a GET for each transaction, and a script with an LPUSH when there are messages to be
    ///     sent.
    /// The first pass, and then one in each sweep, looks for lost messages: for each queue one more
    ///     transaction and a script that only reads: an LINDEX of the source list, LLEN of the dead
    ///     list and LINDEX of its new entries, a thousand or 8 MiB of them; again when there are
    ///     more.
    /// Blocks: for the statements and command_timeout for Redis. A queue that fails does not hold
    ///     up the others; a queue whose mark Redis loses twice meanwhile is left for the next pass.
    ///     Then throws the first failure: DatabaseError, ConnectionError, ReplyError or
    ///     ProtocolError; at once when a server is away. Committed steps stay.
    Reconciled reconcile();

    /// Does the work as it becomes due, until a stop is requested. Sleeps until the first lease
    /// ends, or the first job is due or expires; a NOTIFY wakes it for earlier work. Waits out
    /// outages of both servers and all other failures, and reports them to on_event. A queue that
    /// fails, for example with a message that Redis does not take, is tried again after 5 s at
    /// most, and holds up no other. When another reconciler dies, it goes on within 2 to 3 seconds.
    ///
    /// PostgreSQL: the steps, two statements each time it wakes, three before it sleeps, and one
    ///     each second, so run a few of them, not one in each process. Before it sleeps it waits
    ///     for the COMMITs of claims, failures and submissions under way, and later ones wait
    ///     behind it, at most 100 ms. When one takes longer (100,000 jobs submitted together, a
    ///     prepared transaction, an open one after SET CONSTRAINTS ALL IMMEDIATE), it looks twice a
    ///     second until that is over.
    /// Redis: a GET for each queue in redis_check.
    /// Throws std::system_error when the process can have no more descriptors.
    void run(const std::stop_token& token);

  private:
    detail::Owned<std::unique_ptr<detail::LedgerReconciliation>, "ledger reconciler">
        m_reconciliation;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/postgres/ledger_reconciler.ipp>
#endif
