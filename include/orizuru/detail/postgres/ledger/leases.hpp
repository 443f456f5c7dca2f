// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The runs of one Ledger whose leases are to be renewed.

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// A run's claim: as long as the job has this token and worker, it is this run's.
struct LedgerClaim {
    std::string job;
    std::string worker;
    std::int64_t token;
};

/// Any thread.
class LedgerLeases {
  public:
    /// Has claims renewed as long as it lives.
    class Hold {
      public:
        /// Requests a stop of `lost` when a claim is lost.
        Hold(LedgerLeases& leases, std::span<const LedgerClaim> claims,
             std::stop_source lost = std::stop_source(std::nostopstate))
            : m_leases(leases), m_claims(claims), m_lost(std::move(lost)) {
            const std::lock_guard lock(m_leases.m_mutex);
            m_leases.m_runs.push_back(this);
        }
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;
        ~Hold() {
            const std::lock_guard lock(m_leases.m_mutex);
            std::erase(m_leases.m_runs, this);
        }

      private:
        friend class LedgerLeases;

        LedgerLeases& m_leases;
        std::span<const LedgerClaim> m_claims;
        std::stop_source m_lost;
    };

    /// Claims, as parameters of a statement.
    struct Columns {
        std::vector<std::string> jobs;
        std::vector<std::string> tokens;
        std::vector<std::string> workers;

        void add(std::span<const LedgerClaim> claims) {
            for (const LedgerClaim& claim : claims) {
                jobs.push_back(claim.job);
                tokens.push_back(std::to_string(claim.token));
                workers.push_back(claim.worker);
            }
        }
    };

    /// All claims that are held now.
    [[nodiscard]] Columns held() {
        const std::lock_guard lock(m_mutex);
        Columns all;
        for (const Hold* run : m_runs) {
            all.add(run->m_claims);
        }
        return all;
    }

    /// The ledger has given a claim to another, or made its job dead. Calls the user's callbacks.
    void lost(const std::string& job, const std::string& worker) {
        std::vector<std::stop_source> ended;
        {
            const std::lock_guard lock(m_mutex);
            for (const Hold* run : m_runs) {
                for (const LedgerClaim& claim : run->m_claims) {
                    if (claim.job == job && claim.worker == worker) {
                        ended.push_back(run->m_lost);
                    }
                }
            }
        }
        for (std::stop_source& source : ended) {
            source.request_stop();
        }
    }

  private:
    std::mutex m_mutex;
    std::vector<const Hold*> m_runs;
};

} // namespace orizuru::detail
