// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The canonical state of jobs in PostgreSQL: one row for each, and a history of its changes. The
// database decides what runs; a message in Redis is only the hint that a job can be run, so Redis
// may be lost at any time.
//
//   submit ─► pending ─► running ─► completed         LedgerReconciler sends a message for what is
//                ▲ ▲        │ │ └─► dead              pending, and makes pending again what has
//    lease ended │ │        │ └───► failed            failed when it is due, and what runs when its
//                └─┼────────┘         │               lease has ended (ledger_reconciler.hpp).
//                  └──────────────────┘ due
//
// Each claim gives the job a higher token. The effects and the completion are one transaction,
// which needs the token: of two that run a job, because a lease ended too early, one commits. The
// database refuses all other changes of state, from any client; completed is for ever, and dead
// until somebody revives the job.
//
// A queue in a Redis belongs to one ledger: another database, schema or prefix takes other queues.
// To remove a queue, DELETE it FROM <prefix>ledger_queue when no Ledger is left for it.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/postgres/ledger/core.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger_counts.hpp>
#include <orizuru/postgres/ledger_entry.hpp>
#include <orizuru/postgres/ledger_function.hpp>
#include <orizuru/postgres/ledger_job_options.hpp>
#include <orizuru/postgres/ledger_options.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

template <class T>
class JobBatch;
template <class T>
class JobContext;

/// Submits the jobs of one queue, runs them, and tells what became of them. Any number of threads
/// may use it. It has a connection for each thread that is in it, which it shares with the other
/// Ledgers of the Database, and one more, with a thread of its own that renews the leases of all
/// runs three times in a lease. A forked child lacks that thread: there each operation of a ledger
/// that was made before throws std::logic_error, except the submit in a transaction of yours.
///
/// Every operation tries again while the server is away, for Database::patience(), and when other
/// transactions are in the way. It throws DatabaseError when patience is over or 20 connections
/// were lost: then it is unknown if it has happened. It also does when PostgreSQL refuses a
/// statement of the ledger's own, or others are in the way of it 20 times.
template <class T>
class Ledger {
  public:
    /// Connects. Throws DatabaseError when the server cannot be reached or refuses, SchemaError
    /// when tables or rights are missing, std::invalid_argument for a queue that Redis or
    /// PostgreSQL cannot have or for options out of range, std::system_error when the process can
    /// have no more threads.
    /// The destructor waits for connect_timeout at most.
    Ledger(Database database, std::string queue, LedgerOptions options = {})
        : m_core(std::move(database), std::move(queue), std::move(options)) {}

    /// Makes a job in a transaction of yours; returns its id, 32 hexadecimal digits of which 20 are
    /// random. After the COMMIT, whose NOTIFY wakes it, a LedgerReconciler sends the job to Redis.
    ///
    /// PostgreSQL: one INSERT, which makes an entry in the history too. It takes no lock before the
    ///     COMMIT, which may wait for up to 100 ms while a reconciler falls asleep. With SET
    ///     CONSTRAINTS ALL IMMEDIATE the INSERT takes the lock, and reconcilers look twice a second
    ///     until the transaction ends.
    /// Rights: TableUse::ledger. The tables are those that search_path finds here; what it is at
    ///     COMMIT does not matter.
    /// Throws: EncodeError, before anything is sent, for a payload that cannot be encoded or is
    ///     larger than max_payload: the transaction can go on. pqxx's exceptions as they are: the
    ///     transaction has to be rolled back, and nothing is tried again. PREPARE TRANSACTION is
    ///     refused when a reconciler has to be woken, as NOTIFY does not go with it.
    ///     std::invalid_argument, before anything is sent, for options out of range.
    std::string submit(pqxx::transaction_base& transaction, T payload,
                       const LedgerJobOptions& options = {}) requires MessageEncodable<T> {
        detail::StoredMessage job = make(std::move(payload));
        m_core.insert(transaction, {&job, 1}, options);
        return std::move(job.id);
    }
    /// Does the same in a transaction of its own; returns when it is committed.
    std::string submit(T payload,
                       const LedgerJobOptions& options = {}) requires MessageEncodable<T> {
        detail::StoredMessage job = make(std::move(payload));
        m_core.submit({&job, 1}, options);
        return std::move(job.id);
    }

    /// Does the same for many; returns their ids. PostgreSQL: an INSERT for each MiB of them,
    /// hexadecimal digits counted. Throws as `submit`, EncodeError before anything is sent.
    template <RangeOf<T> R>
    std::vector<std::string>
    submit_all(pqxx::transaction_base& transaction, R&& payloads,
               const LedgerJobOptions& options = {}) requires MessageEncodable<T> {
        auto jobs = make_all(payloads);
        m_core.insert(transaction, jobs, options);
        return detail::ids_of(std::move(jobs));
    }
    /// Does the same in a transaction of its own: all or none.
    template <RangeOf<T> R>
    std::vector<std::string>
    submit_all(R&& payloads, const LedgerJobOptions& options = {}) requires MessageEncodable<T> {
        auto jobs = make_all(payloads);
        m_core.submit(jobs, options);
        return detail::ids_of(std::move(jobs));
    }

    /// Makes a job with an id of your own, so that a repeated request is no second job; false, and
    /// nothing is done, when the ledger has a job of that id, in whatever state and queue, until
    /// `purge` forgets it. It waits for another transaction that makes the same job. Throws besides
    /// std::invalid_argument, before anything is done, for an id that has not 1 to 512 bytes of
    /// UTF-8, none of them null. Else as `submit`.
    bool submit_once(pqxx::transaction_base& transaction, const std::string& id, T payload,
                     const LedgerJobOptions& options = {}) requires MessageEncodable<T> {
        detail::check_text_id(id);
        return m_core.insert_new(transaction, make(std::move(payload), id), options);
    }
    /// Does the same in a transaction of its own; returns when it is committed.
    bool submit_once(const std::string& id, T payload,
                     const LedgerJobOptions& options = {}) requires MessageEncodable<T> {
        detail::check_text_id(id);
        return m_core.submit_new(make(std::move(payload), id), options);
    }

    /// Runs `f(transaction)` once for a job: for a Worker's handler, since the Worker acks
    /// afterwards whatever the outcome. A job that must run again comes again by itself.
    ///
    /// PostgreSQL: a claim, which is one statement and one commit; then one transaction, begun
    ///     here, with an UPDATE and the COMMIT behind `f`. It is READ COMMITTED, whatever the
    ///     database's default is: in a higher level the renewal of the lease would be in the way of
    ///     the UPDATE, so `f` may choose one only when it takes less than a third of the lease. The
    ///     job's row is locked from the UPDATE to the COMMIT; a process that is frozen there for
    ///     the lease, or 5 s, loses its session.
    /// `f` must not end the transaction, nor swallow an error of PostgreSQL outside of a
    ///     pqxx::subtransaction, as the error has ended the transaction: the job has failed then
    ///     and runs again, although what `f` committed itself stays.
    /// If another transaction is in the way or the connection is lost, all is rolled back and
    ///     tried again: `f` may be called several times, and is committed once. It tries only once
    ///     more when PostgreSQL has ended its session for a timeout
    ///     (idle_in_transaction_session_timeout, transaction_timeout): the job has failed when it
    ///     does so again.
    /// The session lives on: `f` should set something by SET LOCAL only, above all search_path, by
    ///     which the next run would look for the tables.
    /// An exception of `f` does not pass through, nor does a COMMIT that PostgreSQL refuses: the
    ///     transaction is rolled back, and the job has failed, with the exception's text as its
    ///     error; after a DoNotRetry it is dead. Only a DatabaseError passes through, also one of
    ///     this library's operations in `f`: the job then comes again when its lease has ended, as
    ///     it does when the process dies.
    /// Call it soon after the message has come, and do not put the message off: one that nobody
    ///     claims for a sweep of the LedgerReconciler may be sent again.
    /// Blocks: for the statements. Throws std::invalid_argument, before anything is done, for an id
    ///     that has not 1 to 512 bytes.
    /// `f` may take a std::stop_token besides: a stop is requested when the job is cancelled, or
    ///     its lease was lost, at most a third of the lease later while PostgreSQL can be reached.
    ///     What `f` does is rolled back then, however it ends. A callback of the token runs on the
    ///     thread that renews all leases of this Ledger: it must neither block, nor throw, nor
    ///     destroy the Ledger.
    /// A value that `f` returns is the job's result, committed with the completion.
    ///     The job fails when it cannot be encoded, or takes more than max_payload.
    template <LedgerFunction<pqxx::work&> F>
    LedgerOutcome run(std::string_view id, F f) {
        return m_core.run(id, [&](pqxx::work& transaction, const std::stop_token& token) {
            return detail::call_for_result(m_core.max_payload(), f, token, transaction);
        });
    }

    /// Does the same with `f(transaction, payload)` or `f(transaction, payload, token)`, and then
    /// acks the message; buries it when the ledger has no such job. Blocks and throws besides as
    /// MessageGuard::ack. An ack that is false or fails does no harm: the next delivery runs
    /// nothing. When this throws before the ack, the guard is unsettled.
    template <LedgerFunction<pqxx::work&, const T&> F>
    LedgerOutcome process(MessageGuard<Job<T>>& guard, F f);

    /// Runs `f(transaction, claimed)` for many jobs in one transaction, since 100 rows of a
    /// statement cost little more than one. `claimed` has the positions, in ascending order, of the
    /// ids whose jobs run now; `f` is not called without any.
    ///
    ///     ledger.run_batch(ids, [&](pqxx::work& tx, auto claimed) {
    ///         for (std::size_t position : claimed) { ... }
    ///     });
    ///
    /// If `f` throws, or a lease has ended meanwhile, all is rolled back, and each job is
    /// finished in a transaction of its own: one that fails holds up no other. `f` then gets one
    /// position at a time, as it does for jobs that another transaction has locked, and for one job
    /// alone. The outcomes are in the order of the ids; the second of equal ids is `repeated`, or
    /// as the first one, and is not run.
    ///
    /// PostgreSQL: a claim of all, which is one statement and one commit, then one transaction with
    ///     an UPDATE of all and the COMMIT behind `f`. One more claim for each job that cannot run,
    ///     which says why. The rest as `run`, for each job.
    /// A DatabaseError passes through when the other jobs are finished, or at once while the server
    ///     does not answer; the next delivery tells what has become of each.
    template <std::invocable<pqxx::work&, std::span<const std::size_t>> F>
    std::vector<LedgerOutcome> run_batch(std::span<const std::string> ids, F f) {
        return m_core.run_batch(
            ids, [&f](pqxx::work& transaction, std::span<const std::size_t> claimed) {
                f(transaction, claimed);
            });
    }

    /// Does the same for the batch of a Worker's handler (worker/handle_batch.hpp): `claimed` has
    /// pointers to the jobs that run now. Buries the messages that the ledger has no job for; the
    /// Worker acks the others behind it. Throws besides as MessageGuard::bury.
    template <std::invocable<pqxx::work&, std::span<const JobContext<T>* const>> F>
    std::vector<LedgerOutcome> process_batch(const JobBatch<T>& batch, F f);

    /// A job's entry; none when the ledger has no such job. One statement.
    [[nodiscard]] std::optional<LedgerEntry> find(std::string_view id) { return m_core.find(id); }
    /// The changes of a job's state, the oldest first; empty for an unknown job. One statement.
    [[nodiscard]] std::vector<LedgerChange> history(std::string_view id) {
        return m_core.history(id);
    }

    /// The result of a completed job; none when it is not completed or has left none, and for an
    /// unknown job. One statement. Throws DecodeError when it is no R, std::invalid_argument for an
    /// id that has not 1 to 512 bytes.
    template <MessageDecodable R>
    [[nodiscard]] std::optional<R> result(std::string_view id) {
        const std::optional<std::string> encoded = m_core.result(id);
        return encoded ? std::optional(detail::decode_result<R>(*encoded)) : std::nullopt;
    }

    /// The queue's jobs in a state, in the order of their ids; those of `submit` begin with the
    /// time. At most `most`, 1 to 10,000, with an id above `after`; without their payloads.
    ///
    ///     for (auto dead = ledger.list(LedgerState::dead); !dead.empty();
    ///          dead = ledger.list(LedgerState::dead, 100, dead.back().id)) { ... }
    ///
    /// PostgreSQL: one statement. It reads what it returns; for pending, running and failed all
    ///     jobs that are not finished. Throws std::invalid_argument for another `most`.
    [[nodiscard]] std::vector<LedgerEntry> list(LedgerState state, std::size_t most = 100,
                                                const std::string& after = {}) {
        return m_core.list(state, most, after);
    }
    /// Returns how many of the queue's jobs are in which state. One statement, which reads those
    /// that it counts.
    [[nodiscard]] LedgerCounts count() { return m_core.count(); }

    /// Makes a pending or failed job dead; false when it is neither. One statement and one commit.
    bool give_up(std::string_view id, std::string_view reason) {
        return m_core.give_up(id, reason);
    }

    /// Does the same, also for a job that runs: what the run does is rolled back, and its outcome
    /// is `dead`; `run` says how it is told. False when the job is completed or dead, also when its
    /// run completes first: waits for that COMMIT.
    bool cancel(std::string_view id, std::string_view reason) { return m_core.cancel(id, reason); }

    /// Makes a dead job pending, with at least so many attempts, 1 to 1,000,000; false when it is
    /// not dead. Its attempts and its history go on; `retry_for` begins anew, and it does not
    /// expire any more. A reconciler sends it as after `submit`. One statement and one commit.
    /// Throws std::invalid_argument for other `attempts`.
    bool revive(std::string_view id, int attempts = 1) { return m_core.revive(id, attempts); }

    /// Forgets the queue's jobs, and their history, that are completed or dead for longer than
    /// `age`, a thousand at a time, each a transaction; returns how many. A message that comes
    /// again after that is `unknown`. Needs the rights of TableUse::purge besides those of
    /// TableUse::ledger, which the constructor takes. Throws besides std::invalid_argument for an
    /// age that is not 0 to 100 years. A job stays, and the rest is forgotten, when a foreign key
    /// of a table of yours refers to it, or another transaction has locked it for longer than 50
    /// ms: `on_held(id, reason)` is told of it, between transactions, in PostgreSQL's words. Each
    /// one costs a statement that is rolled back, and some more when few are held.
    std::uint64_t
    purge(std::chrono::seconds age,
          const std::function<void(std::string_view id, std::string_view reason)>& on_held = {}) {
        return m_core.purge(age, on_held);
    }

  private:
    [[nodiscard]] detail::StoredMessage make(T payload, const std::string& id = {}) const {
        Job<T> job = make_job(std::move(payload));
        // One in the order of time: an index is written at its end, and what is recent lies
        // together, however much is finished.
        job.id = id.empty() ? detail::ordered_id(job.enqueued_at) : id;
        job.kind = m_core.kind();
        detail::StoredMessage message{job.id, {}};
        detail::encode(job, message.payload, m_core.max_payload());
        return message;
    }
    template <class R>
    [[nodiscard]] std::vector<detail::StoredMessage> make_all(R& payloads) const {
        std::vector<detail::StoredMessage> jobs;
        for (const T& payload : payloads) {
            jobs.push_back(make(payload));
        }
        return jobs;
    }

    detail::LedgerCore m_core;
};

template <class T>
template <LedgerFunction<pqxx::work&, const T&> F>
LedgerOutcome Ledger<T>::process(MessageGuard<Job<T>>& guard, F f) {
    const LedgerOutcome outcome = m_core.run(guard->id, [&](pqxx::work& transaction,
                                                            const std::stop_token& token) {
        return detail::call_for_result(m_core.max_payload(), f, token, transaction, guard->payload);
    });
    outcome == LedgerOutcome::unknown ? guard.bury("the ledger has no such job") : guard.ack();
    return outcome;
}

template <class T>
template <std::invocable<pqxx::work&, std::span<const JobContext<T>* const>> F>
std::vector<LedgerOutcome> Ledger<T>::process_batch(const JobBatch<T>& batch, F f) {
    std::vector<std::string> ids;
    for (const JobContext<T>& job : batch) {
        ids.push_back(job.id());
    }
    auto outcomes = run_batch(ids, [&](pqxx::work& transaction, auto claimed) {
        std::vector<const JobContext<T>*> jobs;
        for (const std::size_t position : claimed) {
            jobs.push_back(&batch[position]);
        }
        f(transaction, std::span<const JobContext<T>* const>(jobs));
    });
    for (std::size_t i = 0; i < batch.size(); ++i) {
        if (outcomes[i] == LedgerOutcome::unknown) {
            batch[i].guard()->bury("the ledger has no such job");
        }
    }
    return outcomes;
}

} // namespace orizuru
