// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the tests of the ledger: jobs of the queue `q`, their effects in a table, and the
// ledger's table, read and changed by plain SQL.

#pragma once

#include "integration/postgres/postgres_fixture.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/msgpack.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

/// A LedgerEvent that outlives the call of on_event.
struct LedgerTold {
    LedgerEventKind kind;
    std::string queue;
    std::string job_id;
    std::string detail;
};

struct LedgerFixture : PostgresFixture, QueueFixture {
    LedgerFixture() { sql("CREATE TABLE effects (job text, at timestamptz DEFAULT now())"); }

    std::mutex told_mutex;
    std::vector<LedgerTold> told;

    /// Retries at once, three attempts in all, with a lease that no test waits for.
    static LedgerOptions options() {
        return {.lease = std::chrono::minutes(1),
                .retry = {.max_attempts = 3, .backoff = backoff::fixed({})}};
    }
    static LedgerOptions with_lease(std::chrono::milliseconds lease) {
        LedgerOptions chosen = options();
        chosen.lease = lease;
        return chosen;
    }
    /// A reconciler that sweeps only when a test waits for it.
    LedgerReconcilerOptions reconciling() {
        return {.sweep = std::chrono::hours(24), .on_event = [this](const LedgerEvent& event) {
                    const std::lock_guard lock(told_mutex);
                    told.push_back({event.kind, std::string(event.queue), std::string(event.job_id),
                                    std::string(event.detail)});
                }};
    }
    std::size_t count(LedgerEventKind kind) {
        const std::lock_guard lock(told_mutex);
        return static_cast<std::size_t>(
            std::ranges::count_if(told, [=](const LedgerTold& one) { return one.kind == kind; }));
    }

    /// The effect of a job.
    static auto effect(const std::string& id) {
        return
            [id](pqxx::work& tx) { tx.exec("INSERT INTO effects VALUES (" + tx.quote(id) + ")"); };
    }
    static void fail(pqxx::work& /*tx*/) { throw std::runtime_error("no"); }
    static void nothing(pqxx::work& /*tx*/) {}

    int effects(const std::string& id) {
        return number("SELECT count(*) FROM effects WHERE job = '" + id + "'");
    }
    std::string state(const std::string& id) {
        return text("SELECT state FROM orizuru_ledger WHERE id = '" + id + "'");
    }
    /// Ends a job's lease without the wait.
    void end_lease(const std::string& id) {
        sql("UPDATE orizuru_ledger SET due = clock_timestamp() WHERE id = '" + id +
            "' AND state = 'running'");
    }
    /// "from>to" of the job's history, one after the other.
    std::string changes(const std::string& id) {
        std::string all;
        for (const auto& row : sql("SELECT coalesce(from_state, ''), to_state FROM "
                                   "orizuru_ledger_history WHERE job = '" +
                                   id + "' ORDER BY number")) {
            all += (all.empty() ? "" : " ") + row[0].as<std::string>() + '>' +
                   row[1].as<std::string>();
        }
        return all;
    }
    /// Handles all messages in the queue with the ledger; returns the outcomes.
    template <class T>
    std::vector<LedgerOutcome> handle_all(Ledger<T>& ledger) {
        Consumer<Job<T>> consumer(uri, "q");
        std::vector<LedgerOutcome> outcomes;
        while (auto guard = consumer.next(std::chrono::milliseconds(0))) {
            const std::string id = (*guard)->id;
            outcomes.push_back(
                ledger.process(*guard, [&](pqxx::work& tx, const T&) { effect(id)(tx); }));
        }
        return outcomes;
    }
};

} // namespace orizuru::test
