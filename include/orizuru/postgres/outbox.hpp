// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Messages that are sent if, and only if, a transaction of PostgreSQL commits: they are rows of the
// same transaction, which a relay (outbox_relay.hpp) sends to Redis, in the order of the commits
// unless OutboxOptions::order says otherwise.
//
//   pqxx::work tx(connection);
//   tx.exec("UPDATE accounts ...");
//   outbox.push(tx, Transfer{...});
//   tx.commit();
//
// They are jobs: Worker::handle<T> or Consumer<Job<T>> takes them. Each comes at least once, and
// always with its id, by which an inbox recognises it:
//
//   inbox.process(guard, guard->id, ...);
//
// COMMIT gives messages in order their places, under a lock that is held until the commit can be
// seen: of all transactions with a push, one commits at a time, and waits for the disk alone.
// NOTIFY, which wakes the relays, has PostgreSQL do so anyway, with a lock of its own for the whole
// server (PreCommit_Notify in its src/backend/commands/async.c). Transactions that run long hold up
// nobody before they commit. Messages in no order need no such lock, and a NOTIFY only while a
// relay sleeps.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/postgres/outbox_rows.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/postgres/outbox_options.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

/// Puts messages for one queue into your transactions, for a relay to send. A value without a
/// connection: it is not changed once made, so that any number of threads may use it.
template <MessageEncodable T>
class Outbox {
  public:
    /// Throws std::invalid_argument for a name that no queue can have, or that has over 512 bytes
    /// or is no UTF-8, and for an option that cannot be. Whether the tables are there shows at
    /// `push`.
    explicit Outbox(std::string queue, const OutboxOptions& options = {})
        : m_rows(std::move(queue), options), m_max_payload(options.max_payload) {}

    /// Makes a job (job.hpp) that is sent when `transaction` commits; returns its id. Deleting its
    /// row before that cancels it.
    ///
    /// PostgreSQL: an INSERT, one round trip. In COMMIT two more for each message in order, one
    ///     for others, and a NOTIFY; above is what COMMIT waits for. With SET CONSTRAINTS ALL
    ///     IMMEDIATE all that happens at once: then other transactions with a push in order wait
    ///     until this one ends, and a relay of messages in no order looks twice a second.
    /// Rights: TableUse::outbox. The tables are those that search_path finds here; what it is at
    ///     COMMIT does not matter.
    /// Throws: EncodeError, and the transaction can go on; pqxx's exceptions as they are, and it
    ///     has to be rolled back. COMMIT, which waits, can meet a deadlock or a timeout; from
    ///     REPEATABLE READ on, at the first use of a queue, a serialization failure. Nothing is
    ///     committed then. PREPARE TRANSACTION is refused, as NOTIFY does not go with it; in no
    ///     order, while a relay sleeps.
    std::string push(pqxx::transaction_base& transaction, T payload,
                     std::optional<std::chrono::milliseconds> expires_after = {}) const {
        Job<T> job = make_job(std::move(payload), expires_after);
        push(transaction, job);
        return std::move(job.id);
    }

    /// Does the same for a job with an id of your own choice. An id may be pushed again: an inbox
    /// takes the two for one. Throws besides std::invalid_argument, before all else, for an id that
    /// no inbox takes: one that has not 1 to 512 bytes of UTF-8, none of them null.
    void push(pqxx::transaction_base& transaction, const Job<T>& job) const {
        detail::OutboxRows::check_id(job.id);
        const detail::StoredMessage message = stored(job);
        m_rows.insert(transaction, {&message, 1});
    }

    /// Does the same for many; returns their ids. They are sent in the order of the range, unless
    /// with OutboxOrder::none.
    /// PostgreSQL: an INSERT for each MiB of them, hexadecimal digits counted, and in COMMIT as for
    ///     single ones.
    /// Throws as `push`, EncodeError before anything is sent.
    template <RangeOf<T> R>
    std::vector<std::string> push_all(pqxx::transaction_base& transaction, R&& payloads) const {
        std::vector<detail::StoredMessage> messages;
        for (const T& payload : payloads) {
            messages.push_back(stored(make_job(T(payload))));
        }
        m_rows.insert(transaction, messages);
        return detail::ids_of(std::move(messages));
    }

  private:
    [[nodiscard]] detail::StoredMessage stored(const Job<T>& job) const {
        detail::StoredMessage message{job.id, {}};
        detail::encode(job, message.payload, m_max_payload);
        return message;
    }

    detail::OutboxRows m_rows;
    std::int64_t m_max_payload;
};

} // namespace orizuru
