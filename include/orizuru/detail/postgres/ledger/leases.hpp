// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The runs of one Ledger whose leases are to be renewed.

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace orizuru::detail {

/// What a claim gives: as long as the job has this token and worker, it is this run's.
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
        Hold(LedgerLeases& leases, std::span<const LedgerClaim> claims)
            : m_leases(leases), m_claims(claims) {
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

  private:
    std::mutex m_mutex;
    std::vector<const Hold*> m_runs;
};

} // namespace orizuru::detail
