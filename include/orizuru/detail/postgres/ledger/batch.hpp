// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Many jobs of a ledger that are claimed and completed together, as far as that is possible.

#include <orizuru/detail/postgres/ledger/book.hpp>
#include <orizuru/detail/postgres/ledger/leases.hpp>
#include <orizuru/detail/postgres/ledger/run.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger_options.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Runs once. Blocks and throws as Ledger::run_batch says.
class LedgerBatch {
  public:
    using Effects = std::function<void(pqxx::work&, std::span<const std::size_t>)>;

    LedgerBatch(LedgerBook& book, const RetryPolicy& policy, std::span<const std::string> ids,
                const Effects& effects)
        : m_book(book), m_policy(policy), m_ids(ids), m_effects(effects), m_outcomes(ids.size()) {}

    [[nodiscard]] std::vector<LedgerOutcome> run();

  private:
    /// The positions of ids that are different, can be stored and have no outcome.
    [[nodiscard]] std::vector<std::size_t> open() const;
    void claim_together(const std::vector<std::size_t>& positions);
    /// Completes several in one transaction, or changes nothing.
    [[nodiscard]] bool finish_together(std::span<const LedgerClaim> claims,
                                       const std::vector<std::size_t>& positions);
    /// Has `act(effects)` say the outcome, with the effects of this position. A DatabaseError of
    /// one leaves the others running, as long as the server answers.
    template <class Act>
    void finish_one(std::size_t position, Act act);

    LedgerBook& m_book;
    const RetryPolicy& m_policy;
    std::span<const std::string> m_ids;
    const Effects& m_effects;
    std::vector<std::optional<LedgerOutcome>> m_outcomes;
    std::unordered_map<std::string_view, std::size_t> m_first; ///< positions of different ids
    std::exception_ptr m_error;                                ///< the first
    // Jobs that one claim could not have are claimed by the same name, as that claim may be
    // committed although its answer was lost.
    std::string m_name = m_book.next_name();
};

inline std::vector<std::size_t> LedgerBatch::open() const {
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < m_ids.size(); ++i) {
        const auto found = m_first.find(m_ids[i]);
        if (found != m_first.end() && found->second == i && !m_outcomes[i]) {
            positions.push_back(i);
        }
    }
    return positions;
}

inline std::vector<LedgerOutcome> LedgerBatch::run() {
    for (std::size_t i = 0; i < m_ids.size(); ++i) {
        if (storable(m_ids[i])) {
            m_first.try_emplace(m_ids[i], i);
        }
    }
    claim_together(open());
    const auto run_alone = [this](std::size_t position) {
        finish_one(position, [&](const LedgerEffects& effects) {
            return run_job(m_book, m_ids[position], m_name, m_policy,
                           [&](pqxx::work& transaction, const std::stop_token&) {
                               return effects(transaction);
                           });
        });
    };
    // A step of a reconciler locks many jobs at once: who has waited for one of them finds the
    // others free.
    if (const auto left = open(); left.size() > 2) {
        run_alone(left.front());
        claim_together(open());
    }
    std::ranges::for_each(open(), run_alone);
    if (m_error) {
        std::rethrow_exception(m_error);
    }
    std::vector<LedgerOutcome> all;
    for (std::size_t i = 0; i < m_ids.size(); ++i) {
        const auto first = m_first.find(m_ids[i]);
        const LedgerOutcome outcome =
            first == m_first.end() ? LedgerOutcome::unknown : m_outcomes[first->second].value();
        const bool again = first != m_first.end() && first->second != i;
        all.push_back(again && outcome == LedgerOutcome::completed ? LedgerOutcome::repeated
                                                                   : outcome);
    }
    return all;
}

inline void LedgerBatch::claim_together(const std::vector<std::size_t>& positions) {
    if (positions.size() < 2) {
        return;
    }
    std::vector<std::string> jobs(positions.size());
    std::ranges::transform(positions, jobs.begin(), [this](auto at) { return m_ids[at]; });
    std::vector<LedgerClaim> claims = m_book.claim_all(jobs, m_name);
    std::ranges::sort(claims, {}, [this](const auto& claim) { return m_first.at(claim.job); });
    std::vector<std::size_t> claimed(claims.size());
    std::ranges::transform(claims, claimed.begin(),
                           [this](const auto& claim) { return m_first.at(claim.job); });
    const LedgerLeases::Hold hold(m_book.leases(), claims);
    const bool together = finish_together(claims, claimed);
    for (std::size_t i = 0; i < claims.size(); ++i) {
        if (together) {
            m_outcomes[claimed[i]] = LedgerOutcome::completed;
        } else {
            finish_one(claimed[i], [&](const LedgerEffects& effects) {
                return finish_job(m_book, claims[i], m_policy, effects);
            });
        }
    }
}

inline bool LedgerBatch::finish_together(std::span<const LedgerClaim> claims,
                                         const std::vector<std::size_t>& positions) {
    if (claims.size() < 2) {
        return false;
    }
    constexpr int most_failures = 2; // one of the jobs may end the session each time
    int failures = 0;
    try {
        return m_book.complete_all(claims, [&](pqxx::work& transaction) {
            if (failures == most_failures) {
                throw std::runtime_error("each is finished alone");
            }
            ++failures;
            m_effects(transaction, positions);
            --failures;
        });
    } catch (const DatabaseError&) {
        if (failures == 0 || !m_book.answers()) {
            throw;
        }
    } catch (...) { // NOLINT(bugprone-empty-catch)
    }
    return false; // which of them it is shows when each is finished alone
}

template <class Act>
void LedgerBatch::finish_one(std::size_t position, Act act) {
    try {
        m_outcomes[position] = act([&](pqxx::work& transaction) {
            m_effects(transaction, std::array{position});
            return LedgerResult();
        });
    } catch (const DatabaseError&) {
        m_outcomes[position] = LedgerOutcome::failed; // never returned, as m_error is thrown
        m_error = m_error ? m_error : std::current_exception();
        if (!m_book.answers()) {
            throw;
        }
    }
}

} // namespace orizuru::detail
