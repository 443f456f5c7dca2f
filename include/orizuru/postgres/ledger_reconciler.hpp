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
// What lies in Redis is not looked at: who removes messages there by other means than a consumer's
// (DEL of the list, say) has to remove the queue's key `ledger`, too (keys.hpp); so has who puts
// PostgreSQL's files back from a copy without a recovery. A message that was buried, because
// PostgreSQL was away in all tries of a Worker, or its processes died before they had claimed the
// job, was sent: the job stays pending while it is on the dead list. Bring it back by
// DeadList::redrive (dead_list.hpp), or give the job up.

#include <orizuru/connection.hpp>
#include <orizuru/detail/at_exit.hpp>
#include <orizuru/detail/identity.hpp>
#include <orizuru/detail/jittered_pauses.hpp>
#include <orizuru/detail/postgres/ledger_mark.hpp>
#include <orizuru/detail/postgres/ledger_pauses.hpp>
#include <orizuru/detail/postgres/ledger_queues.hpp>
#include <orizuru/detail/postgres/ledger_session.hpp>
#include <orizuru/detail/postgres/ledger_step.hpp>
#include <orizuru/detail/postgres/notifications.hpp>
#include <orizuru/detail/sleep.hpp>
#include <orizuru/detail/wake.hpp>
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
#include <set>
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
    ///     in which the queue's row is locked, which waits for nobody. Redis: for each a GET, and a
    ///     script of an LPUSH when something is to be sent.
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
    // How long a step may leave PostgreSQL without a word, at least; else for two commands' time.
    static constexpr std::chrono::milliseconds least_idle{30'000};
    // How soon it looks again when others held the lock: nobody tells it what it has missed then.
    static constexpr std::chrono::milliseconds next_look{500};

    detail::LedgerStep step(const std::string& queue);
    void pass(const std::string& queue, Reconciled& all);
    void check_servers(const std::string& queue);
    void turn(const std::stop_token& token);
    void attend(const std::string& queue);
    void wait(detail::TimePoint until, const std::stop_token& token);
    void check_redis();
    void tell(const LedgerEvent& event) const noexcept;

    detail::LedgerSession m_session;
    LedgerReconcilerOptions m_options;
    detail::LedgerStepper m_stepper;
    Connection m_redis;
    std::unique_ptr<detail::Notifications> m_notifications;
    std::vector<detail::LedgerQueue> m_queues; ///< as they were at the last look
    std::set<std::string> m_suspects; ///< queues of which Redis seems to have lost something
    detail::LedgerPauses m_pauses;
    detail::TimePoint m_next_sweep{};
    detail::TimePoint m_next_check{};
};

inline LedgerReconciler::LedgerReconciler(Database database, Endpoint redis,
                                          LedgerReconcilerOptions options)
    : m_session(std::move(database)),
      m_options(std::move(options)),
      m_stepper(m_session.database().prefix(), detail::make_identity("reconciler").id,
                std::max(least_idle, 2 * redis.command_timeout())),
      m_redis(std::move(redis)) {
    detail::check(m_options);
}

inline detail::LedgerStep LedgerReconciler::step(const std::string& queue) {
    detail::LedgerStep step = m_session.in(
        [&](pqxx::connection& connection) { return m_stepper.step(connection, m_redis, queue); });
    for (const auto& told : step.told) {
        tell({told.kind, queue, told.job, told.detail});
    }
    return step;
}

inline Reconciled LedgerReconciler::reconcile() {
    Reconciled all;
    std::exception_ptr first;
    for (const detail::LedgerQueue& queue : m_session.look().queues) {
        try {
            pass(queue.name, all);
        } catch (const Error&) {
            first = first ? first : std::current_exception();
            check_servers(queue.name);
        } catch (const std::invalid_argument&) { // a name that Redis cannot have, by SQL
            first = first ? first : std::current_exception();
        }
    }
    if (first) {
        std::rethrow_exception(first);
    }
    return all;
}

inline void LedgerReconciler::pass(const std::string& queue, Reconciled& all) {
    using Next = detail::LedgerStep::Next;
    int losses = 0;
    Next next = Next::more;
    // A Redis that evicts the mark loses it again and again.
    while (next == Next::more || (next == Next::lost && losses < 2)) {
        const detail::LedgerStep step = this->step(queue);
        all.sent += step.sent;
        all.retried += step.retried;
        for (const auto& told : step.told) {
            all.lease_ended += told.kind == LedgerEventKind::lease_ended ? 1 : 0;
            all.died += told.kind == LedgerEventKind::died ? 1 : 0;
        }
        next = step.next;
        losses += next == Next::lost ? 1 : 0;
    }
}

/// After a queue has failed: throws when it is not the queue's fault, but the servers are away.
inline void LedgerReconciler::check_servers(const std::string& queue) {
    m_session.in([](pqxx::connection& connection) {
        return pqxx::nontransaction(connection).exec("SELECT");
    });
    try {
        const std::string key = Keys(queue).ledger();
        m_redis.command(key, "GET", key);
    } catch (const ReplyError&) { // NOLINT(bugprone-empty-catch)
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
            tell({.kind = LedgerEventKind::failed, .detail = error.what()});
        }
        m_notifications.reset();
        detail::sleep_until(detail::deadline_in(pauses.next()), token);
    }
}

/// One look, and what is to be done by it; else a sleep.
inline void LedgerReconciler::turn(const std::stop_token& token) {
    if (!m_notifications) {
        m_session.in([this](pqxx::connection&) {
            m_notifications =
                std::make_unique<detail::Notifications>(m_session.database(), "ledger");
            return true;
        });
    }
    // Also when there is no time to sleep.
    m_session.in([&](pqxx::connection&) {
        m_notifications->drain(detail::TimePoint::min(), token);
        return true;
    });
    detail::LedgerLook look = m_session.look();
    m_queues = std::move(look.queues);
    std::erase_if(m_suspects, [this](const std::string& name) {
        return std::ranges::none_of(m_queues,
                                    [&](const auto& queue) { return queue.name == name; });
    });
    check_redis();
    const detail::TimePoint now = detail::Clock::now();
    const bool sweep = now >= m_next_sweep;
    if (sweep) {
        m_next_sweep = now + m_options.sweep;
    }
    bool idle = true;
    detail::TimePoint until =
        look.alone ? m_next_sweep : std::min(m_next_sweep, detail::deadline_in(next_look));
    for (const detail::LedgerQueue& queue : m_queues) {
        const bool now_due = sweep || m_suspects.contains(queue.name);
        const auto at = std::max(now_due ? now : queue.due, m_pauses.end(queue.name));
        if (queue.due > now) {
            m_pauses.nothing_due(queue.name);
        }
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
    m_suspects.erase(queue);
    try {
        m_pauses.stepped(queue, step(queue));
    } catch (const Error& error) {
        tell({.kind = LedgerEventKind::failed, .queue = queue, .detail = error.what()});
        m_pauses.failed(queue);
        check_servers(queue);
    } catch (const std::invalid_argument& error) { // a name that Redis cannot have, by SQL
        tell({.kind = LedgerEventKind::failed, .queue = queue, .detail = error.what()});
        m_pauses.leave(queue, m_options.sweep);
    }
}

inline void LedgerReconciler::wait(detail::TimePoint until, const std::stop_token& token) {
    while (m_suspects.empty() && !token.stop_requested() && detail::Clock::now() < until) {
        const bool notified = m_session.in([&](pqxx::connection&) {
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
        if (m_pauses.end(queue.name) > detail::Clock::now()) {
            continue; // the step behind the pause looks
        }
        try {
            const std::string key = Keys(queue.name).ledger();
            if (!queue.mark.included_in(
                    detail::parse_mark(m_redis.command(key, "GET", key).text))) {
                m_suspects.insert(queue.name);
            }
        } catch (const ReplyError&) {
            m_suspects.insert(queue.name);
        } catch (const std::invalid_argument&) { // NOLINT(bugprone-empty-catch)
        }
    }
}

inline void LedgerReconciler::tell(const LedgerEvent& event) const noexcept {
    if (m_options.on_event) {
        try {
            m_options.on_event(event);
        } catch (...) { // NOLINT(bugprone-empty-catch)
        }
    }
}

} // namespace orizuru
