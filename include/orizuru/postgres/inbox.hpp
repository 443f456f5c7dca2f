// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Effects in PostgreSQL once for each message, however often it is delivered: one transaction has
// the effects and the mark that the message was processed; the ack comes after it.
//
//   delivery ──► BEGIN ─► mark ─► effects ─► COMMIT ─► ack
//                           └ marked before: nothing ───┘
//
// A crash before COMMIT leaves nothing; after a later one the next delivery finds the mark. Redis
// remembers nothing: it may be lost, or go back in time. What the function does outside of its
// transaction may be repeated.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/consumer/guard_access.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/inbox_options.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru {

namespace detail {
class InboxMarks;
}

/// Runs an effect once for each id, and remembers the ids, in one scope. The scope names the
/// effect, as several consumers may each do something of their own with the same message. Any
/// number of threads may use it; it has a connection for each thread that is in it, shared with the
/// other Inboxes of the Database. In a forked child each operation of an Inbox that was made before
/// throws std::logic_error.
class Inbox {
  public:
    /// Connects. Throws DatabaseError when the server cannot be reached or refuses, SchemaError
    /// when tables or rights are missing, std::invalid_argument for a scope that has not 1 to 512
    /// bytes or a `wait` that cannot be.
    Inbox(Database database, std::string scope, InboxOptions options = {});
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;
    ~Inbox();

    /// Runs `f(transaction)` once for an id: for a Worker's handler, since the Worker acks the
    /// message afterwards. When the outcome is busy, schedule the message again, or throw, so that
    /// the RetryPolicy applies: an ack would lose the message if the other transaction fails.
    ///
    ///     if (inbox.run(job.id(), f) == InboxOutcome::busy) {
    ///         push_after(*job.guard(), std::chrono::seconds(1)); // retry.hpp
    ///     }
    ///
    /// PostgreSQL: one transaction, begun here, of four statements besides those of `f`: an INSERT
    ///     is before it, the COMMIT behind it. Its isolation level is the database's default, which
    ///     the connection string can change: options='-c
    ///     default_transaction_isolation=serializable'. `f` must not end it.
    /// If another transaction is in the way (a deadlock, a serialization failure) or the
    ///     connection is lost, all is rolled back and tried again: `f` may be called several times,
    ///     and is committed once. It tries only once more when PostgreSQL has ended its session for
    ///     a timeout (idle_in_transaction_session_timeout, transaction_timeout): the second time
    ///     this throws pqxx::broken_connection, with PostgreSQL's words.
    /// Blocks: for the statements; `wait` for others with this id; Database::patience() while the
    ///     server is away.
    /// The session lives on: `f` should set something by SET LOCAL only, and search_path, by which
    ///     the tables are found, not at all.
    /// Throws what `f` throws, and what pqxx does when PostgreSQL refuses the COMMIT of its
    ///     effects (a deferred constraint, 20 conflicts), as it is: then all is rolled back;
    ///     std::logic_error when `f` has ended its transaction, or swallowed the failure of a
    ///     statement, which leaves nothing to commit; DatabaseError when patience is over or 20
    ///     connections were lost, and it is unknown then whether a COMMIT has happened: another
    ///     call finds out; DatabaseError, too, when PostgreSQL refuses the mark, before `f` is
    ///     called; std::invalid_argument, before anything is done, for an id that has not 1 to 512
    ///     bytes of UTF-8, none of them null.
    template <std::invocable<pqxx::work&> F>
    [[nodiscard]] InboxOutcome run(std::string_view id, F f) {
        return run_effects(id, [&f](pqxx::work& transaction) { f(transaction); });
    }

    /// Does the same with `f(transaction, message)`, and then acks the message, unless it is busy:
    /// then it goes to the back of its queue, in one step. Blocks and throws besides as
    /// MessageGuard::ack. An ack that is false or fails does no harm: the next delivery is
    /// `repeated`. When this throws before the ack, the guard is unsettled. Throws
    /// std::logic_error, before anything is done, for a job with a key (keyed.hpp): use `run`.
    template <class T, std::invocable<pqxx::work&, const T&> F>
    InboxOutcome process(MessageGuard<T>& guard, std::string_view id, F f) {
        detail::GuardAccess::core(guard).refuse_if_awaited();
        const InboxOutcome outcome =
            run(id, [&](pqxx::work& transaction) { f(transaction, *guard); });
        outcome == InboxOutcome::busy ? guard.push(guard.keys().source()) : guard.ack();
        return outcome;
    }

    /// Runs `f(transaction, fresh)` for many ids in one transaction, since rows of one INSERT cost
    /// little more than one. `fresh` has the positions, in ascending order, of the ids that were
    /// not processed before; of equal ids the first. `f` is not called without any.
    ///
    ///     auto results = inbox.run_batch(ids, [&](pqxx::work& tx, auto fresh) {
    ///         for (std::size_t position : fresh) { ... }
    ///     });
    ///
    /// If `f` throws, or another transaction has one of the ids for as long as `wait`, all is
    /// rolled back, and each id is run in a transaction of its own: the one that fails or is busy
    /// holds up no other. `f` then gets one position at a time. The results are in the order of the
    /// ids.
    ///
    /// PostgreSQL: one transaction, of seven statements besides those of `f`. The rest as `run`.
    /// Throws, with nothing of the batch in doubt but what it has run: DatabaseError, as `run`;
    ///     std::invalid_argument, before anything is done, as `run`. What else `f` throws is in the
    ///     results.
    template <std::invocable<pqxx::work&, std::span<const std::size_t>> F>
    [[nodiscard]] std::vector<InboxResult> run_batch(std::span<const std::string> ids, F f) {
        return run_batch_effects(ids,
                                 [&f](pqxx::work& transaction, std::span<const std::size_t> fresh) {
                                     f(transaction, fresh);
                                 });
    }

    /// Forgets the ids that were processed longer ago than `age`, a thousand at a time; returns how
    /// many. A message that comes again after that is processed again: keep ids for longer than a
    /// message can be in Redis. Needs the rights of TableUse::purge besides those of
    /// TableUse::inbox, which the constructor takes. Throws DatabaseError when patience is over, or
    /// PostgreSQL refuses, and what was forgotten stays so; std::invalid_argument for an age that
    /// is not 0 to 100 years. An id stays, and the rest is forgotten, when a foreign key of a table
    /// of yours refers to it, or another transaction has locked it for longer than 50 ms:
    /// `on_held(id, reason)` is told of it, between transactions, in PostgreSQL's words. Each one
    /// costs a statement that is rolled back, and some more when few are held.
    std::uint64_t
    purge(std::chrono::seconds age,
          const std::function<void(std::string_view id, std::string_view reason)>& on_held = {});

  private:
    InboxOutcome run_effects(std::string_view id, const std::function<void(pqxx::work&)>& effects);
    std::vector<InboxResult> run_batch_effects(
        std::span<const std::string> ids,
        const std::function<void(pqxx::work&, std::span<const std::size_t>)>& effects);

    const std::unique_ptr<detail::InboxMarks> m_marks;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/postgres/inbox.ipp>
#endif
