// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The changes of a job's state that a Ledger writes.

#include <orizuru/detail/postgres/array.hpp>
#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/encoding.hpp>
#include <orizuru/detail/postgres/ledger/leases.hpp>
#include <orizuru/detail/postgres/ledger/renewal.hpp>
#include <orizuru/detail/postgres/ledger/tries.hpp>
#include <orizuru/detail/postgres/pool.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/ledger_options.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace orizuru::detail {

/// The encoded result of a job, if it leaves one.
using LedgerResult = std::optional<std::string>;
/// A job's function, called in the ledger's transaction.
using LedgerEffects = std::function<LedgerResult(pqxx::work&)>;

/// Any thread.
class LedgerBook {
  public:
    LedgerBook(Database database, std::string worker, std::chrono::milliseconds lease)
        : m_pool(std::move(database), Isolation::read_committed),
          m_worker(std::move(worker)),
          m_lease(lease),
          m_longest_idle(std::to_string(std::max(lease, least_idle).count())),
          m_renewal(m_pool.database(), m_leases, lease) {}

    /// To be called once, before all else, with the name of the schema that has the tables, quoted:
    /// a function of yours may set search_path for its transaction.
    void work_in(const std::string& schema) {
        m_complete = "SELECT " + schema + "." + m_pool.sql("$p$ledger_complete(");
        m_before = "SELECT state FROM " + schema + "." +
                   m_pool.sql("$p$ledger WHERE id = $1 AND token = $2 AND worker = $3");
    }

    [[nodiscard]] Pool& pool() noexcept { return m_pool; }
    [[nodiscard]] const std::string& worker() const noexcept { return m_worker; }

    /// The claim, or why there is none. `name` is unique to the run, so that the database
    /// recognises a repeated claim whose answer was lost.
    [[nodiscard]] std::variant<LedgerClaim, LedgerOutcome> claim(std::string_view job,
                                                                 const std::string& name);
    /// Has `f(transaction)` and the completion committed together.
    [[nodiscard]] LedgerOutcome complete(const LedgerClaim& claim, const LedgerEffects& f);
    /// The try has failed: the job is tried again, or dead.
    [[nodiscard]] LedgerOutcome fail(const LedgerClaim& claim, const RetryPolicy& policy,
                                     std::string_view reason);
    /// The try has failed, and the job is dead.
    [[nodiscard]] LedgerOutcome fail_for_good(const LedgerClaim& claim, std::string_view reason);

    /// The claims of those that can be had at once and without waiting for anybody, in no order; of
    /// the others `claim` says why not. None when one of the ids cannot be in the database.
    [[nodiscard]] std::vector<LedgerClaim> claim_all(const std::vector<std::string>& jobs,
                                                     const std::string& name);
    /// Has `f(transaction)` and the completion of all claims of one name committed together; false,
    /// and nothing is changed, when one of them no longer holds.
    [[nodiscard]] bool complete_all(std::span<const LedgerClaim> claims,
                                    const std::function<void(pqxx::work&)>& f);

    [[nodiscard]] bool answers() { return m_pool.answers(); }
    /// No other change has this name: the database recognises by it what is repeated because its
    /// answer was lost.
    [[nodiscard]] std::string next_name() { return m_worker + '/' + std::to_string(++m_runs); }
    [[nodiscard]] LedgerLeases& leases() noexcept { return m_leases; }

  private:
    /// `next(transaction)` says when the next try is, and why this one failed.
    template <class Next>
    [[nodiscard]] LedgerOutcome fail_with(const LedgerClaim& claim, Next next);
    [[nodiscard]] LedgerTries tries(pqxx::work& transaction, const LedgerClaim& claim) const;
    /// Returns what became of the job when the claim no longer holds: by what this run wrote
    /// before, or dead by others; `fenced` when it is not this run's any more.
    [[nodiscard]] LedgerOutcome before(pqxx::work& transaction, const LedgerClaim& claim) const;

    // A slow network needs this much.
    static constexpr std::chrono::milliseconds least_idle{5'000};

    Pool m_pool;
    std::string m_worker;
    std::chrono::milliseconds m_lease;
    std::string m_longest_idle; ///< in ms, with the job locked: its process may be frozen
    std::atomic<std::uint64_t> m_runs{0};
    LedgerLeases m_leases;
    LedgerRenewal m_renewal;

    const std::string m_claim = m_pool.sql("SELECT * FROM $p$ledger_claim($1::text, $2, $3)");
    std::string m_complete;
    const std::string m_tries = m_pool.sql(R"sql(
SELECT attempt, max_attempts, coalesce((
    SELECT extract(epoch FROM clock_timestamp() - min(at)) * 1000 FROM $p$ledger_history
    WHERE job = id AND to_state = 'failed' AND number > coalesce((
        SELECT max(number) FROM $p$ledger_history WHERE job = id AND from_state = 'dead'), 0)
    ), 0)::bigint
FROM $p$ledger WHERE id = $1
)sql");
    const std::string m_fail = m_pool.sql(R"sql(
UPDATE $p$ledger SET state = CASE WHEN $4::bigint < 0 OR expires <= next.due THEN 'dead'
                                  ELSE 'failed' END,
    due = next.due, error = $5, changed_at = clock_timestamp(), changed_by = $3
FROM (SELECT clock_timestamp() + $4::bigint * interval '1 ms' AS due) AS next
WHERE id = $1 AND token = $2 AND worker = $3 AND state = 'running'
RETURNING state
)sql");
    std::string m_before;
    const std::string m_claim_all = m_pool.sql("SELECT * FROM $p$ledger_claim($1::text[], $2, $3)");
};

inline std::variant<LedgerClaim, LedgerOutcome> LedgerBook::claim(std::string_view job,
                                                                  const std::string& name) {
    if (!storable(job)) {
        return LedgerOutcome::unknown;
    }
    LedgerClaim claim{std::string(job), name, 0};
    const pqxx::result answer = attempt_own(m_pool, [&](pqxx::connection& connection) {
        pqxx::nontransaction transaction(connection);
        return unless_untranslatable([&] {
            return execute(transaction, m_claim, claim.job, claim.worker, m_lease.count());
        });
    });
    if (answer.empty()) {
        return LedgerOutcome::unknown;
    }
    const auto verdict = answer[0][0].as<std::string>();
    if (verdict == "claimed") {
        claim.token = answer[0][1].as<std::int64_t>();
        return claim;
    }
    return verdict == "repeated"    ? LedgerOutcome::repeated
           : verdict == "elsewhere" ? LedgerOutcome::elsewhere
           : verdict == "not_due"   ? LedgerOutcome::not_due
           : verdict == "dead"      ? LedgerOutcome::dead
                                    : LedgerOutcome::unknown;
}

inline LedgerOutcome LedgerBook::complete(const LedgerClaim& claim, const LedgerEffects& f) {
    return attempt(m_pool, [&](pqxx::connection& connection) {
        pqxx::work transaction(connection);
        const LedgerResult result = f(transaction);
        // No parameters: with libpqxx 6 they go without a look at whether the transaction is over,
        // because `f` has swallowed an error.
        const pqxx::result completed =
            transaction.exec(m_complete + transaction.quote(claim.job) + ", " +
                             std::to_string(claim.token) + ", " + transaction.quote(claim.worker) +
                             ", " + (result ? "decode('" + to_hex(*result) + "', 'hex')" : "NULL") +
                             ", " + m_longest_idle + ")");
        if (!completed[0][0].as<bool>()) {
            return before(transaction, claim);
        }
        transaction.commit();
        return LedgerOutcome::completed;
    });
}

inline LedgerOutcome LedgerBook::before(pqxx::work& transaction, const LedgerClaim& claim) const {
    const pqxx::result found = execute(transaction, m_before, claim.job, claim.token, claim.worker);
    const auto state = found.empty() ? std::string() : found[0][0].as<std::string>();
    return state == "completed" ? LedgerOutcome::completed
           : state == "failed"  ? LedgerOutcome::failed
           : state == "dead"    ? LedgerOutcome::dead
                                : LedgerOutcome::fenced;
}

inline LedgerOutcome LedgerBook::fail(const LedgerClaim& claim, const RetryPolicy& policy,
                                      std::string_view reason) {
    return fail_with(claim, [&](pqxx::work& transaction) {
        return next_ledger_try(policy, tries(transaction, claim), claim.job, reason);
    });
}

inline LedgerOutcome LedgerBook::fail_for_good(const LedgerClaim& claim, std::string_view reason) {
    return fail_with(claim, [&](pqxx::work& /*transaction*/) {
        return LedgerNextTry{std::nullopt, storable_reason(reason)};
    });
}

template <class Next>
LedgerOutcome LedgerBook::fail_with(const LedgerClaim& claim, Next next) {
    return attempt_own(m_pool, [&](pqxx::connection& connection) {
        return storing_reasons([&](ReasonForm form) {
            pqxx::work transaction(connection);
            const LedgerNextTry follows = next(transaction);
            transaction.exec("SET LOCAL idle_in_transaction_session_timeout = " + m_longest_idle);
            const pqxx::result failed =
                execute(transaction, m_fail, claim.job, claim.token, claim.worker,
                        follows.delay_ms(), in_form(form, follows.reason));
            if (failed.empty()) {
                return before(transaction, claim);
            }
            const bool dead = failed[0][0].as<std::string>() == "dead"; // it may expire before
            transaction.commit();
            return dead ? LedgerOutcome::dead : LedgerOutcome::failed;
        });
    });
}

inline LedgerTries LedgerBook::tries(pqxx::work& transaction, const LedgerClaim& claim) const {
    const pqxx::result found = execute(transaction, m_tries, claim.job);
    if (found.empty()) {
        return {}; // then there is nothing to be written, either
    }
    return {found[0][0].as<int>(), found[0][1].as<int>(),
            std::chrono::milliseconds(found[0][2].as<std::int64_t>())};
}

inline std::vector<LedgerClaim> LedgerBook::claim_all(const std::vector<std::string>& jobs,
                                                      const std::string& name) {
    const std::string ids = to_array(jobs);
    const pqxx::result answer = attempt_own(m_pool, [&](pqxx::connection& connection) {
        pqxx::nontransaction transaction(connection);
        return unless_untranslatable(
            [&] { return execute(transaction, m_claim_all, ids, name, m_lease.count()); });
    });
    std::vector<LedgerClaim> claims;
    for (const auto& row : answer) {
        claims.push_back({row[0].as<std::string>(), name, row[1].as<std::int64_t>()});
    }
    return claims;
}

inline bool LedgerBook::complete_all(std::span<const LedgerClaim> claims,
                                     const std::function<void(pqxx::work&)>& f) {
    LedgerLeases::Columns held;
    held.add(claims);
    return attempt(m_pool, [&](pqxx::connection& connection) {
        pqxx::work transaction(connection);
        f(transaction);
        const pqxx::result completed = transaction.exec(
            m_complete + transaction.quote(to_array(held.jobs)) + "::text[], " +
            transaction.quote(claims.front().worker) + ", " + m_longest_idle + ")");
        const auto count = completed[0][0].as<std::size_t>();
        if (count != claims.size()) {
            // It completes none if a COMMIT without an answer has completed all; else some belong
            // to this run no more.
            return count == 0 && before(transaction, claims.front()) == LedgerOutcome::completed;
        }
        transaction.commit();
        return true;
    });
}

} // namespace orizuru::detail
