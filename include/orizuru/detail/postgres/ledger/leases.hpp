// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The runs of one Ledger whose leases are to be renewed.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
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
    /// Has a claim renewed as long as it lives.
    class Hold {
      public:
        Hold(LedgerLeases& leases, const LedgerClaim& claim) : m_leases(leases), m_claim(claim) {
            const std::lock_guard lock(m_leases.m_mutex);
            m_leases.m_claims.push_back(&m_claim);
        }
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;
        ~Hold() {
            const std::lock_guard lock(m_leases.m_mutex);
            std::erase(m_leases.m_claims, &m_claim);
        }

      private:
        LedgerLeases& m_leases;
        const LedgerClaim& m_claim;
    };

    /// Claims, as parameters of a statement.
    struct Columns {
        std::vector<std::string> jobs;
        std::vector<std::string> tokens;
        std::vector<std::string> workers;
    };

    /// All claims that are held now.
    [[nodiscard]] Columns held() {
        const std::lock_guard lock(m_mutex);
        Columns all;
        for (const LedgerClaim* claim : m_claims) {
            all.jobs.push_back(claim->job);
            all.tokens.push_back(std::to_string(claim->token));
            all.workers.push_back(claim->worker);
        }
        return all;
    }

  private:
    std::mutex m_mutex;
    std::vector<const LedgerClaim*> m_claims;
};

} // namespace orizuru::detail
