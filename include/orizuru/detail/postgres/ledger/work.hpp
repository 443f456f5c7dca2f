// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Does a reconciler's work for one queue, by its connections to both servers.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/postgres/ledger/losses.hpp>
#include <orizuru/detail/postgres/ledger/mark.hpp>
#include <orizuru/detail/postgres/ledger/queues.hpp>
#include <orizuru/detail/postgres/ledger/session.hpp>
#include <orizuru/detail/postgres/ledger/step.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/ledger_event.hpp>
#include <orizuru/postgres/ledger_reconciler_options.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace orizuru::detail {

/// One thread's at a time.
class LedgerWork {
  public:
    /// Connects to both; throws as LedgerReconciler's constructor does.
    LedgerWork(Database database, Endpoint redis, const LedgerReconcilerOptions& options)
        : m_on_event(options.on_event),
          m_session(std::move(database)),
          m_worker(make_identity("reconciler").id),
          m_longest_idle(std::max(least_idle, 2 * redis.command_timeout())),
          m_stepper({m_session.database().prefix(), m_worker, m_longest_idle, options.sweep}),
          m_losses({m_session.database().prefix(), m_worker, m_longest_idle, options.sweep},
                   options.retry),
          m_redis(std::move(redis)) {}

    [[nodiscard]] LedgerSession& session() noexcept { return m_session; }

    /// Does a step, and tells what has come of it.
    [[nodiscard]] LedgerStep step(const std::string& queue) {
        return told(queue, m_session.in([&](pqxx::connection& connection) {
            return m_stepper.step(connection, m_redis, queue);
        }));
    }
    /// Searches for lost messages, and tells what has come of it.
    [[nodiscard]] LedgerStep search(const std::string& queue) {
        return told(queue, m_session.in([&](pqxx::connection& connection) {
            return m_losses.search(connection, m_redis, queue);
        }));
    }
    /// True if Redis has what it has to have.
    [[nodiscard]] bool has_mark(const LedgerQueue& queue) {
        const std::string key = Keys(queue.name).ledger();
        return queue.mark.included_in(parse_mark(m_redis.command(key, "GET", key).text));
    }
    /// After a queue has failed: throws when it is not the queue's fault, but the servers are away.
    void check_servers(const std::string& queue) {
        m_session.in([](pqxx::connection& connection) {
            return pqxx::nontransaction(connection).exec("SELECT");
        });
        try {
            const std::string key = Keys(queue).ledger();
            m_redis.command(key, "GET", key);
        } catch (const ReplyError&) { // NOLINT(bugprone-empty-catch)
        }
    }

    void tell(const LedgerEvent& event) const noexcept {
        if (m_on_event) {
            try {
                m_on_event(event);
            } catch (...) { // NOLINT(bugprone-empty-catch)
            }
        }
    }

  private:
    [[nodiscard]] LedgerStep told(const std::string& queue, LedgerStep step) const {
        for (const auto& told : step.told) {
            tell({told.kind, queue, told.job, told.detail});
        }
        return step;
    }

    // Least time for which a step may leave PostgreSQL without a word; else for two commands' time.
    static constexpr std::chrono::milliseconds least_idle{30'000};

    std::function<void(const LedgerEvent&)> m_on_event;
    LedgerSession m_session;
    std::string m_worker;
    std::chrono::milliseconds m_longest_idle;
    LedgerStepper m_stepper;
    LedgerLosses m_losses;
    Connection m_redis;
};

inline void add(Reconciled& all, const LedgerStep& step) {
    const auto told = [&](LedgerEventKind kind) {
        return static_cast<std::uint64_t>(
            std::ranges::count(step.told, kind, &LedgerStep::Told::kind));
    };
    all.sent += step.sent;
    all.retried += step.retried;
    all.lease_ended += told(LedgerEventKind::lease_ended);
    all.died += told(LedgerEventKind::died);
    all.buried += told(LedgerEventKind::buried);
    all.lost += told(LedgerEventKind::message_lost);
}

} // namespace orizuru::detail
