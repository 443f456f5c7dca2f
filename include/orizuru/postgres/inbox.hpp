// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Effects in PostgreSQL once for each message, however often it is delivered: the mark that it was
// processed and the effects are one transaction, and the ack comes behind it.
//
//   delivery ──► BEGIN ─► mark ─► effects ─► COMMIT ─► ack
//                           └ marked before: nothing ───┘
//
// A crash before COMMIT has done nothing, one behind it has a mark that the next delivery finds.
// Nothing is remembered in Redis: it may be lost, or go back in time. What the function does
// outside of its transaction may be done again.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/failure.hpp>
#include <orizuru/detail/postgres/pool.hpp>
#include <orizuru/detail/postgres/rights.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

struct InboxOptions {
    /// How long a delivery waits while another one of the same id is being processed; 0 to 24 h.
    std::chrono::milliseconds wait = std::chrono::seconds(10);
};

enum class InboxOutcome {
    ran,      ///< the function has run, and is committed
    repeated, ///< it was committed before: nothing was done
    busy      ///< another transaction has had the id for as long as `wait`: nothing was done
};

/// The ids that were processed, in one scope: a name for what is done, as several consumers may
/// each do something of their own with the same message. May be used by any number of threads; has
/// as many connections as are in it at once. In a forked child each operation of one that was made
/// before throws std::logic_error.
class Inbox {
  public:
    /// Connects. Throws DatabaseError when the server cannot be reached or refuses, SchemaError
    /// when tables or rights are missing, std::invalid_argument for a scope that has not 1 to 512
    /// bytes or a `wait` that cannot be.
    Inbox(Database database, std::string scope, InboxOptions options = {});

    /// Has `f(transaction)` run once for an id: for a Worker's handler, behind which the message is
    /// acked. When busy, an ack would lose the message if the other one fails: the caller has it
    /// come again, or throws, so that the RetryPolicy applies.
    ///
    ///     if (inbox.run(job.id(), f) == InboxOutcome::busy) {
    ///         push_after(*job.guard(), std::chrono::seconds(1)); // retry.hpp
    ///     }
    ///
    /// PostgreSQL: one transaction, begun here, of four statements besides those of `f`: an INSERT
    ///     is before it, the COMMIT behind it. Its isolation level is the database's default, which
    ///     the connection string can change: options='-c
    ///     default_transaction_isolation=serializable'. `f` must not end it.
    /// When another transaction is in the way (a deadlock, a serialization failure) or the
    ///     connection is lost, all is rolled back and tried again: `f` may be called several times,
    ///     and is committed once.
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
    [[nodiscard]] InboxOutcome run(std::string_view id, F f);

    /// The same with `f(transaction, message)`, and then acks the message, unless it is busy: then
    /// it goes to the back of its queue, in one step.
    /// Blocks and throws besides as MessageGuard::ack. An ack that is false or fails does no harm:
    /// the next delivery is `repeated`. When this throws before the ack, the guard is unsettled.
    template <class T, std::invocable<pqxx::work&, const T&> F>
    InboxOutcome process(MessageGuard<T>& guard, std::string_view id, F f) {
        const InboxOutcome outcome =
            run(id, [&](pqxx::work& transaction) { f(transaction, *guard); });
        outcome == InboxOutcome::busy ? guard.push(guard.keys().source()) : guard.ack();
        return outcome;
    }

    /// Forgets what was processed longer ago than `age`, a thousand ids at a time; returns how
    /// many. A message that comes again after that is processed again: keep ids for longer than a
    /// message can be in Redis. Needs the rights of TableUse::purge besides those of
    /// TableUse::inbox, which the constructor takes. Throws DatabaseError when patience is over, or
    /// PostgreSQL refuses, and what was forgotten stays so; std::invalid_argument for an age that
    /// is not 0 to 100 years.
    std::uint64_t purge(std::chrono::seconds age);

  private:
    /// The transaction, when the id was not marked before.
    [[nodiscard]] std::optional<std::string> mark(pqxx::work& transaction,
                                                  std::string_view id) const;
    /// Whether it is the transaction in which the mark is, and can be committed: a COMMIT after a
    /// statement that failed is a ROLLBACK, of which pqxx does not tell.
    [[nodiscard]] static bool is_unbroken(pqxx::work& transaction, const std::string& marked);

    std::string m_scope;
    InboxOptions m_options;
    detail::Pool m_pool;
    std::string m_mark;
    std::string m_purge;
};

inline Inbox::Inbox(Database database, std::string scope, InboxOptions options)
    : m_scope(std::move(scope)),
      m_options(options),
      m_pool(std::move(database)),
      m_mark(m_pool.sql("SELECT $p$inbox_mark($1, $2, $3)")),
      m_purge(m_pool.sql(R"sql(
DELETE FROM $p$inbox WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM $p$inbox
    WHERE scope = $1 AND processed_at < statement_timestamp() - $2 * interval '1 second'
    ORDER BY processed_at LIMIT 1000))
)sql")) {
    detail::check_text_id(m_scope);
    if (m_options.wait < std::chrono::milliseconds(0) || m_options.wait > std::chrono::hours(24)) {
        throw std::invalid_argument("wait must be 0 to 24 h");
    }
    detail::check_tables(m_pool, TableUse::inbox);
}

inline std::optional<std::string> Inbox::mark(pqxx::work& transaction, std::string_view id) const {
    const pqxx::result marked =
        detail::execute(transaction, m_mark, m_scope, std::string(id), m_options.wait.count());
    return marked[0][0].is_null() ? std::nullopt : std::optional(marked[0][0].as<std::string>());
}

inline bool Inbox::is_unbroken(pqxx::work& transaction, const std::string& marked) {
    try {
        return transaction
            .exec("SELECT txid_current_if_assigned() IS NOT DISTINCT FROM " + marked)[0][0]
            .as<bool>();
    } catch (const pqxx::usage_error&) {
        return false;
    } catch (const pqxx::sql_error& error) {
        if (error.sqlstate() != "25P02") { // in_failed_sql_transaction
            throw;
        }
        return false;
    }
}

template <std::invocable<pqxx::work&> F>
InboxOutcome Inbox::run(std::string_view id, F f) {
    detail::check_text_id(id);
    bool in_doubt = false; // whether the last attempt was committed
    bool called = false;
    const auto transact = [&](pqxx::connection& connection) {
        called = false;
        pqxx::work transaction(connection);
        std::optional<std::string> marked;
        try {
            marked = mark(transaction, id);
        } catch (const pqxx::sql_error& error) {
            if (detail::failure_of(error.sqlstate()) == detail::Failure::waited) {
                return InboxOutcome::busy;
            }
            throw;
        }
        if (!marked) {
            return in_doubt ? InboxOutcome::ran : InboxOutcome::repeated;
        }
        in_doubt = false;
        called = true;
        f(transaction);
        if (!is_unbroken(transaction, *marked)) {
            throw std::logic_error("an inbox's function has ended its transaction, or swallowed "
                                   "the failure of a statement");
        }
        const int backend = connection.backendpid();
        try {
            transaction.commit();
        } catch (...) {
            in_doubt = detail::failure_of_current(connection, backend) == detail::Failure::lost;
            throw;
        }
        return InboxOutcome::ran;
    };
    try {
        return detail::attempt(m_pool, transact);
    } catch (const pqxx::failure& error) {
        if (called) {
            throw; // the function's, or what comes of its effects
        }
        throw detail::database_error(m_pool.database(), error);
    }
}

inline std::uint64_t Inbox::purge(std::chrono::seconds age) {
    detail::check_age(age);
    std::uint64_t purged = 0;
    while (true) {
        const std::uint64_t step = detail::attempt_own(m_pool, [&](pqxx::connection& connection) {
            pqxx::work transaction(connection);
            const pqxx::result deleted =
                detail::execute(transaction, m_purge, m_scope, age.count());
            transaction.commit();
            return static_cast<std::uint64_t>(deleted.affected_rows());
        });
        if (step == 0) {
            return purged;
        }
        purged += step;
    }
}

} // namespace orizuru
