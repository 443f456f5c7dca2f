// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The passes of a LedgerReconciler over all queues, once or as they are due.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/postgres/ledger/agenda.hpp>
#include <orizuru/detail/postgres/ledger/checks.hpp>
#include <orizuru/detail/postgres/ledger/purging.hpp>
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

namespace orizuru::detail {

/// One thread's at a time. Blocks and throws as LedgerReconciler says.
class LedgerReconciliation {
  public:
    LedgerReconciliation(Database database, Endpoint redis, LedgerReconcilerOptions options);

    Reconciled reconcile();
    void run(const std::stop_token& token);

  private:
    // Time between two questions whether those have died whom commits rely on.
    static constexpr std::chrono::milliseconds others_take{1000};
    // Time to the next look when commits under way took too long to wait for: none wakes it.
    static constexpr std::chrono::milliseconds next_look{500};

    static LedgerReconcilerOptions checked(LedgerReconcilerOptions options) {
        validate(options);
        return options;
    }
    LedgerStep search(const std::string& queue);
    void pass(const std::string& queue, Reconciled& all);
    void search_all(const std::string& queue, Reconciled& all);
    void begin_sweep();
    void purge(Reconciled& all);
    void turn(const std::stop_token& token);
    void attend(const std::string& queue);
    void sleep(TimePoint until, const std::stop_token& token);
    void wait(TimePoint until, const std::stop_token& token);
    void check_redis();

    LedgerReconcilerOptions m_options;
    LedgerWork m_work;
    std::unique_ptr<Notifications> m_notifications;
    std::vector<LedgerQueue> m_queues; ///< as they were at the last look
    LedgerAgenda m_agenda;
    LedgerPurging m_purging;
    bool m_attended = true; ///< to something, since it slept
    TimePoint m_slept{};
    TimePoint m_next_sweep{};
    TimePoint m_next_check{};
};

inline LedgerReconciliation::LedgerReconciliation(Database database, Endpoint redis,
                                                  LedgerReconcilerOptions options)
    : m_options(checked(std::move(options))),
      m_work(std::move(database), std::move(redis), m_options),
      m_purging(m_work.session(), m_options.purge_after) {}

/// A search that fails waits for the next sweep: it must not hold up messages to be sent.
inline LedgerStep LedgerReconciliation::search(const std::string& queue) {
    m_agenda.searched(queue);
    LedgerStep found = m_work.search(queue);
    if (found.next != LedgerStep::Next::done) {
        m_agenda.search(queue);
    }
    return found;
}

inline Reconciled LedgerReconciliation::reconcile() {
    Reconciled all;
    std::exception_ptr first;
    m_queues = m_work.session().look();
    begin_sweep();
    for (const LedgerQueue& queue : m_queues) {
        const auto attempt =
            [&](void (LedgerReconciliation::*act)(const std::string&, Reconciled&)) {
                try {
                    (this->*act)(queue.name, all);
                } catch (const Error&) {
                    first = first ? first : std::current_exception();
                    m_work.check_servers(queue.name);
                } catch (const std::invalid_argument&) { // a name that Redis cannot have, by SQL
                    first = first ? first : std::current_exception();
                }
            };
        attempt(&LedgerReconciliation::search_all);
        attempt(&LedgerReconciliation::pass);
    }
    while (!first && m_purging.goes_on()) {
        purge(all);
    }
    if (first) {
        std::rethrow_exception(first);
    }
    return all;
}

/// Does nothing before it is time.
inline void LedgerReconciliation::begin_sweep() {
    m_agenda.keep(m_queues);
    if (Clock::now() >= m_next_sweep) {
        m_next_sweep = deadline_in(m_options.sweep);
        m_agenda.sweep(m_queues);
        m_purging.begin(m_queues);
    }
}

inline void LedgerReconciliation::purge(Reconciled& all) {
    const auto [queue, done] = m_purging.step();
    for (const Purged::Held& held : done.held) {
        m_work.tell({LedgerEventKind::held, queue, held.id, held.reason});
    }
    all.purged += done.count;
    all.held += done.held.size();
}

inline void LedgerReconciliation::search_all(const std::string& queue, Reconciled& all) {
    LedgerStep found{.next = LedgerStep::Next::more};
    while (found.next == LedgerStep::Next::more && m_agenda.is_unsearched(queue)) {
        found = search(queue);
        add(all, found);
    }
}

inline void LedgerReconciliation::pass(const std::string& queue, Reconciled& all) {
    using Next = LedgerStep::Next;
    int losses = 0;
    Next next = Next::more;
    // A Redis that evicts the mark loses it again and again.
    while (next == Next::more || (next == Next::lost && losses < 2)) {
        const LedgerStep step = m_work.step(queue);
        add(all, step);
        next = step.next;
        losses += next == Next::lost ? 1 : 0;
    }
}

inline void LedgerReconciliation::run(const std::stop_token& token) {
    // Nobody would read its notifications.
    const auto deaf = at_exit([this] {
        m_notifications.reset();
        m_work.session().leave();
    });
    JitteredPauses pauses;
    while (!token.stop_requested()) {
        try {
            turn(token);
            pauses.reset();
            continue;
        } catch (const Error& error) {
            m_work.tell({.kind = LedgerEventKind::failed, .detail = error.what()});
        }
        m_notifications.reset();
        sleep_until(deadline_in(pauses.next()), token);
    }
}

/// One look, and a step for each queue that is due; sleeps when none is.
inline void LedgerReconciliation::turn(const std::stop_token& token) {
    if (!m_notifications) {
        m_work.session().in([this](pqxx::connection&) {
            m_notifications =
                std::make_unique<Notifications>(m_work.session().database(), "ledger");
            return true;
        });
    }
    // Also when there is no time to sleep.
    m_work.session().in([&](pqxx::connection&) {
        m_notifications->drain(TimePoint::min(), token);
        return true;
    });
    m_work.session().wake();
    m_queues = m_work.session().look();
    begin_sweep();
    check_redis();
    const TimePoint now = Clock::now();
    bool idle = true;
    TimePoint until = m_next_sweep;
    for (const LedgerQueue& queue : m_queues) {
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
    if (m_purging.goes_on() && !token.stop_requested()) {
        idle = false;
        Reconciled unread;
        purge(unread);
    }
    if (idle) {
        sleep(until, token);
    }
}

inline void LedgerReconciliation::sleep(TimePoint until, const std::stop_token& token) {
    // Another reconciler may have in hand what commits wake this one for: then it falls asleep no
    // more often than this.
    const TimePoint earliest = m_slept + std::chrono::milliseconds(10);
    if (!m_attended && Clock::now() < earliest) {
        return sleep_until(earliest, token);
    }
    m_attended = false;
    m_slept = Clock::now();
    const bool told_of_all = m_work.session().doze(until);
    for (const LedgerQueue& queue : m_work.session().look()) {
        until = std::min(until, m_agenda.due(queue));
    }
    if (told_of_all && Clock::now() < until) {
        m_work.session().fall_asleep();
    }
    wait(told_of_all ? until : std::min(until, deadline_in(next_look)), token);
}

inline void LedgerReconciliation::attend(const std::string& queue) {
    m_attended = true;
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

inline void LedgerReconciliation::wait(TimePoint until, const std::stop_token& token) {
    while (!m_agenda.any_urgent() && !token.stop_requested() && Clock::now() < until) {
        const bool notified = m_work.session().in([&](pqxx::connection&) {
            return m_notifications->wait(std::min({until, m_next_check, deadline_in(others_take)}),
                                         token);
        });
        if (notified || m_work.session().lapsed()) {
            return;
        }
        check_redis();
    }
}

/// Does nothing before it is time.
inline void LedgerReconciliation::check_redis() {
    if (Clock::now() < m_next_check) {
        return;
    }
    m_next_check = deadline_in(m_options.redis_check);
    for (const LedgerQueue& queue : m_queues) {
        if (m_agenda.pause_end(queue.name) > Clock::now()) {
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

} // namespace orizuru::detail
