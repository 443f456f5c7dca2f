// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Has what the ledger says come true in Redis: each pending job gets its message, those that have
// failed when they are due, those that ran when their lease has ended, and all of them again when
// Redis was lost or went back in time, or PostgreSQL was replaced by a standby or from a backup.
// Any number may run, on any host: each step is one transaction for one queue, and one sending in
// it. A crash between the sending and the COMMIT has messages sent again; the ledger runs a job
// once all the same.
//
// In each sweep it looks for messages that were lost alone. A pending job is sent again when its
// message was sent longer ago than a sweep takes and the source list is empty, or serves next a job
// that was submitted after that sending: a message that was removed by DEL, say, but also one that
// a consumer holds for so long without a claim, or has put off. For these, the time doubles with
// each sending until the job is claimed, up to an hour, or a sweep when that is longer. A pending
// job whose message was buried (it could not be decoded, PostgreSQL was away in all tries of a
// Worker, its processes died before they had claimed the job) has failed with the entry's reason,
// in a try of its own: it is tried again later, or dead. Of the messages of one try the first that
// is buried counts. The entry stays on the dead list.
//
// When you put PostgreSQL's files back from a copy without a recovery, remove the queue's key
// `ledger` in Redis, too (keys.hpp).

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/postgres/ledger/agenda.hpp>
#include <orizuru/detail/postgres/ledger/queues.hpp>
#include <orizuru/detail/postgres/ledger/step.hpp>
#include <orizuru/detail/postgres/ledger/work.hpp>
#include <orizuru/detail/postgres/notifications.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/ledger_event.hpp>
#include <orizuru/postgres/ledger_reconciler_options.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

/// For all queues of the ledgers in one database: three connections, used by one thread at a time.
class LedgerReconciler {
  public:
    /// Connects to both. Throws DatabaseError when PostgreSQL cannot be reached or refuses,
    /// SchemaError when tables or rights are missing, what Connection's constructor throws, and
    /// std::invalid_argument for options that cannot be.
    LedgerReconciler(Database database, Endpoint redis, LedgerReconcilerOptions options = {});

    /// One pass: does all that is to be done now, queue by queue, but for queues that another
    /// reconciler has in hand.
    /// PostgreSQL: for each queue a transaction for up to a thousand jobs or 1 MiB, at least one,
    ///     in which the queue's row is locked, which waits for nobody. Redis: for each a GET, and
    ///     a script of an LPUSH when something is to be sent.
    /// The first pass, and then one in each sweep, looks for lost messages: for each queue one more
    ///     transaction and a script that only reads: an LINDEX of the source list, LLEN of the dead
    ///     list and LINDEX of its new entries, a thousand or 8 MiB of them; again when there are
    ///     more.
    /// Blocks: for the statements and command_timeout for Redis. A queue that fails does not hold
    ///     up the others; one of which Redis loses something twice meanwhile is left for the next
    ///     pass. Then throws what failed first, DatabaseError, ConnectionError, ReplyError or
    ///     ProtocolError; at once when a server is away: what was committed stays.
    Reconciled reconcile();

    /// Does what is to be done as it is to be done, until a stop is requested. Sleeps until the
    /// first lease ends or the first failed job is due; a NOTIFY wakes it when something earlier
    /// comes. Waits out outages of both, and whatever else goes wrong: on_event is told. A queue
    /// that fails, with a message that Redis does not take, say, is tried again after 5 s at most,
    /// and holds up no other.
    /// PostgreSQL: one statement for each time it wakes, besides the steps; while it looks, jobs
    ///     that are claimed, fail or are submitted wait with their COMMIT. It waits with the look
    ///     for such COMMITs under way, and for 100 ms at most: when one takes longer (100,000 jobs
    ///     submitted together, a prepared transaction, an open one after SET CONSTRAINTS ALL
    ///     IMMEDIATE), it looks twice a second until that is over. Redis: a GET for each
    ///     queue in redis_check.
    /// Throws std::system_error when the process can have no more descriptors.
    void run(const std::stop_token& token);

  private:
    // How soon it looks again when others held the lock: nobody tells it what it has missed then.
    static constexpr std::chrono::milliseconds next_look{500};

    static LedgerReconcilerOptions checked(LedgerReconcilerOptions options) {
        detail::check(options);
        return options;
    }
    detail::LedgerStep search(const std::string& queue);
    void pass(const std::string& queue, Reconciled& all);
    void search_all(const std::string& queue, Reconciled& all);
    void begin_sweep();
    void turn(const std::stop_token& token);
    void attend(const std::string& queue);
    void wait(detail::TimePoint until, const std::stop_token& token);
    void check_redis();

    LedgerReconcilerOptions m_options;
    detail::LedgerWork m_work;
    std::unique_ptr<detail::Notifications> m_notifications;
    std::vector<detail::LedgerQueue> m_queues; ///< as they were at the last look
    detail::LedgerAgenda m_agenda;
    detail::TimePoint m_next_sweep{};
    detail::TimePoint m_next_check{};
};

inline LedgerReconciler::LedgerReconciler(Database database, Endpoint redis,
                                          LedgerReconcilerOptions options)
    : m_options(checked(std::move(options))),
      m_work(std::move(database), std::move(redis), m_options) {}

/// A search that fails is for the next sweep: it must not hold up what is to be sent.
inline detail::LedgerStep LedgerReconciler::search(const std::string& queue) {
    m_agenda.searched(queue);
    detail::LedgerStep found = m_work.search(queue);
    if (found.next != detail::LedgerStep::Next::done) {
        m_agenda.search(queue);
    }
    return found;
}

inline Reconciled LedgerReconciler::reconcile() {
    Reconciled all;
    std::exception_ptr first;
    m_queues = m_work.session().look().queues;
    begin_sweep();
    for (const detail::LedgerQueue& queue : m_queues) {
        const auto attempt = [&](void (LedgerReconciler::*act)(const std::string&, Reconciled&)) {
            try {
                (this->*act)(queue.name, all);
            } catch (const Error&) {
                first = first ? first : std::current_exception();
                m_work.check_servers(queue.name);
            } catch (const std::invalid_argument&) { // a name that Redis cannot have, by SQL
                first = first ? first : std::current_exception();
            }
        };
        attempt(&LedgerReconciler::search_all);
        attempt(&LedgerReconciler::pass);
    }
    if (first) {
        std::rethrow_exception(first);
    }
    return all;
}

/// When it is time to.
inline void LedgerReconciler::begin_sweep() {
    m_agenda.keep(m_queues);
    if (detail::Clock::now() >= m_next_sweep) {
        m_next_sweep = detail::deadline_in(m_options.sweep);
        m_agenda.sweep(m_queues);
    }
}

inline void LedgerReconciler::search_all(const std::string& queue, Reconciled& all) {
    detail::LedgerStep found{.next = detail::LedgerStep::Next::more};
    while (found.next == detail::LedgerStep::Next::more && m_agenda.is_unsearched(queue)) {
        found = search(queue);
        detail::add(all, found);
    }
}

inline void LedgerReconciler::pass(const std::string& queue, Reconciled& all) {
    using Next = detail::LedgerStep::Next;
    int losses = 0;
    Next next = Next::more;
    // A Redis that evicts the mark loses it again and again.
    while (next == Next::more || (next == Next::lost && losses < 2)) {
        const detail::LedgerStep step = m_work.step(queue);
        detail::add(all, step);
        next = step.next;
        losses += next == Next::lost ? 1 : 0;
    }
}

inline void LedgerReconciler::run(const std::stop_token& token) {
    // Nobody would read what it is told.
    const auto deaf = detail::at_exit([this] { m_notifications.reset(); });
    detail::JitteredPauses pauses;
    while (!token.stop_requested()) {
        try {
            turn(token);
            pauses.reset();
            continue;
        } catch (const Error& error) {
            m_work.tell({.kind = LedgerEventKind::failed, .detail = error.what()});
        }
        m_notifications.reset();
        detail::sleep_until(detail::deadline_in(pauses.next()), token);
    }
}

/// One look, and what is to be done by it; else a sleep.
inline void LedgerReconciler::turn(const std::stop_token& token) {
    if (!m_notifications) {
        m_work.session().in([this](pqxx::connection&) {
            m_notifications =
                std::make_unique<detail::Notifications>(m_work.session().database(), "ledger");
            return true;
        });
    }
    // Also when there is no time to sleep.
    m_work.session().in([&](pqxx::connection&) {
        m_notifications->drain(detail::TimePoint::min(), token);
        return true;
    });
    detail::LedgerLook look = m_work.session().look();
    m_queues = std::move(look.queues);
    begin_sweep();
    check_redis();
    const detail::TimePoint now = detail::Clock::now();
    bool idle = true;
    detail::TimePoint until =
        look.alone ? m_next_sweep : std::min(m_next_sweep, detail::deadline_in(next_look));
    for (const detail::LedgerQueue& queue : m_queues) {
        if (queue.due > now) {
            m_agenda.nothing_due(queue.name);
        }
        const auto at = m_agenda.due(queue);
        if (at > now) {
            until = std::min(until, at);
        } else if (!token.stop_requested()) {
            idle = false;
            attend(queue.name);
        }
    }
    if (idle) {
        wait(until, token);
    }
}

inline void LedgerReconciler::attend(const std::string& queue) {
    m_agenda.begin(queue);
    const auto failed = [&](const std::exception& error) {
        m_work.tell({.kind = LedgerEventKind::failed, .queue = queue, .detail = error.what()});
    };
    try {
        if (m_agenda.is_unsearched(queue)) {
            search(queue);
        }
    } catch (const Error& error) {
        failed(error);
    } catch (const std::invalid_argument&) { // NOLINT(bugprone-empty-catch)
    }
    try {
        m_agenda.stepped(queue, m_work.step(queue));
    } catch (const Error& error) {
        failed(error);
        m_agenda.failed(queue);
        m_work.check_servers(queue);
    } catch (const std::invalid_argument& error) { // a name that Redis cannot have, by SQL
        failed(error);
        m_agenda.leave(queue, m_options.sweep);
    }
}

inline void LedgerReconciler::wait(detail::TimePoint until, const std::stop_token& token) {
    while (!m_agenda.any_urgent() && !token.stop_requested() && detail::Clock::now() < until) {
        const bool notified = m_work.session().in([&](pqxx::connection&) {
            return m_notifications->wait(std::min(until, m_next_check), token);
        });
        if (notified) {
            return;
        }
        check_redis();
    }
}

/// When it is time to.
inline void LedgerReconciler::check_redis() {
    if (detail::Clock::now() < m_next_check) {
        return;
    }
    m_next_check = detail::deadline_in(m_options.redis_check);
    for (const detail::LedgerQueue& queue : m_queues) {
        if (m_agenda.pause_end(queue.name) > detail::Clock::now()) {
            continue; // the step behind the pause looks
        }
        try {
            if (!m_work.has_mark(queue)) {
                m_agenda.urge(queue.name);
            }
        } catch (const ReplyError&) {
            m_agenda.urge(queue.name);
        } catch (const std::invalid_argument&) { // NOLINT(bugprone-empty-catch)
        }
    }
}

} // namespace orizuru
