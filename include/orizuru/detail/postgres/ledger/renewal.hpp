// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps the leases of a Ledger's runs, and tells the runs that have lost theirs: a statement three
// times in a lease, on a thread and a connection of its own, which neither a run nor Redis can hold
// up.

#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/postgres/array.hpp>
#include <orizuru/detail/postgres/client.hpp>
#include <orizuru/detail/postgres/ledger/leases.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>

#include <pqxx/pqxx>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace orizuru::detail {

class LedgerRenewal {
  public:
    /// Throws std::system_error when the process can have no more threads or descriptors.
    LedgerRenewal(Database database, LedgerLeases& leases, std::chrono::milliseconds lease)
        : m_database(std::move(database)),
          m_leases(leases),
          m_lease(lease),
          m_thread([this] { run(); }) {}
    LedgerRenewal(const LedgerRenewal&) = delete;
    LedgerRenewal& operator=(const LedgerRenewal&) = delete;
    /// Waits for connect_timeout at most.
    ~LedgerRenewal() {
        if (m_fork_mark.forked()) {
            return;
        }
        m_closing.store(true);
        m_wake.signal();
        {
            const std::lock_guard lock(m_mutex);
            if (m_client) {
                // The server may have stopped answering.
                ::shutdown((*m_client)->sock(), SHUT_RDWR);
            }
        }
    }

  private:
    void run() {
        TimePoint due = deadline_in(m_lease / 3);
        while (!m_closing.load()) {
            wait_ready(-1, 0, &m_wake, due);
            m_wake.clear();
            if (Clock::now() >= due) {
                due = deadline_in(m_lease / 3);
                renew();
            }
        }
    }
    void renew() {
        // Again: the connection may be one that was lost while it was idle.
        for (int tries = 0; tries < 2 && !m_closing.load(); ++tries) {
            try {
                return renew_once();
            } catch (const std::exception&) {
                // A lease that cannot be renewed ends, and what comes of that is the ledger's.
                replace(nullptr);
            }
        }
    }
    void renew_once();
    void replace(std::unique_ptr<Client> client) {
        const std::lock_guard lock(m_mutex);
        m_client.swap(client);
    }

    Database m_database;
    LedgerLeases& m_leases;
    std::chrono::milliseconds m_lease;
    // A COMMIT that waited for a standby or the disk would let the lease end and lock the row. One
    // that a crash forgets is made up for by the next renewal.
    const std::string m_renew = with_prefix(R"sql(
WITH held AS (
    SELECT held.* FROM set_config('synchronous_commit', 'off', true),
        unnest($1::text[], $2::bigint[], $3::text[]) AS held (job, token, worker)
), renewed AS (
    UPDATE $p$ledger AS job SET due = clock_timestamp() + $4::bigint * interval '1 ms'
    FROM (SELECT id FROM $p$ledger AS running JOIN held
              ON (running.id, running.token, running.worker) = (held.job, held.token, held.worker)
          WHERE state = 'running' FOR NO KEY UPDATE OF running SKIP LOCKED) AS ours
    WHERE job.id = ours.id
)
SELECT job, worker FROM held WHERE NOT EXISTS (
    SELECT FROM $p$ledger AS running WHERE state = 'running' AND
        (running.id, running.token, running.worker) = (held.job, held.token, held.worker))
)sql",
                                            m_database.prefix());
    ForkMark m_fork_mark;
    Wake m_wake;
    std::atomic<bool> m_closing{false};
    std::mutex m_mutex; ///< guards m_client's being there; only the thread changes and uses it
    std::unique_ptr<Client> m_client;
    OwnThread m_thread;
};

inline void LedgerRenewal::renew_once() {
    const LedgerLeases::Columns held = m_leases.held();
    if (held.jobs.empty()) {
        return;
    }
    if (!m_client) {
        replace(std::make_unique<Client>(m_database));
    }
    const pqxx::result lost = [&] {
        pqxx::nontransaction transaction(**m_client);
        return execute(transaction, m_renew, to_array(held.jobs), to_array(held.tokens),
                       to_array(held.workers), m_lease.count());
    }();
    for (const auto& row : lost) {
        m_leases.lost(row[0].as<std::string>(), row[1].as<std::string>());
    }
}

} // namespace orizuru::detail
