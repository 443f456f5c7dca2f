// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Changes a ledger's jobs from outside: gives them up, cancels and revives them.

#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/encoding.hpp>
#include <orizuru/detail/postgres/ledger/tries.hpp>
#include <orizuru/detail/postgres/pool.hpp>
#include <orizuru/detail/postgres/statement.hpp>

#include <pqxx/pqxx>

#include <string>
#include <string_view>

namespace orizuru::detail {

/// Has `set`, whose parameters are the job, `name` and one more text, change the state of a job.
/// Returns whether this call has changed it, now or in an attempt whose answer was lost: by `name`,
/// which no other call has.
[[nodiscard]] inline bool change_in_ledger(Pool& pool, const std::string& set, std::string_view job,
                                           const std::string& name, const std::string& parameter) {
    if (!storable(job)) {
        return false;
    }
    const std::string sql = pool.sql("WITH changed AS (UPDATE $p$ledger " + set +
                                     "RETURNING id) SELECT EXISTS (SELECT FROM changed) OR EXISTS ("
                                     "SELECT FROM $p$ledger_history WHERE job = $1 AND who = $2)");
    return attempt_own(pool, [&](pqxx::connection& connection) {
        const pqxx::result answer = unless_untranslatable([&] {
            return storing_reasons([&](ReasonForm form) {
                pqxx::nontransaction transaction(connection);
                return execute(transaction, sql, std::string(job), name, in_form(form, parameter));
            });
        });
        return !answer.empty() && answer[0][0].as<bool>();
    });
}

[[nodiscard]] inline bool end_in_ledger(Pool& pool, std::string_view job, const std::string& name,
                                        std::string_view reason, const std::string& states) {
    return change_in_ledger(pool,
                            R"sql(
SET state = 'dead', error = $3, changed_at = clock_timestamp(), changed_by = $2
WHERE id = $1 AND state IN )sql" +
                                states,
                            job, name, storable_reason(reason));
}

[[nodiscard]] inline bool give_up_in_ledger(Pool& pool, std::string_view job,
                                            const std::string& name, std::string_view reason) {
    return end_in_ledger(pool, job, name, reason, "('pending', 'failed') ");
}

[[nodiscard]] inline bool cancel_in_ledger(Pool& pool, std::string_view job,
                                           const std::string& name, std::string_view reason) {
    return end_in_ledger(pool, job, name, reason, "('pending', 'failed', 'running') ");
}

[[nodiscard]] inline bool revive_in_ledger(Pool& pool, std::string_view job,
                                           const std::string& name, int attempts) {
    return change_in_ledger(pool,
                            R"sql(
SET state = 'pending', max_attempts = greatest(max_attempts, attempt + $3::integer),
    changed_at = clock_timestamp(), changed_by = $2
WHERE id = $1 AND state = 'dead'
)sql",
                            job, name, std::to_string(attempts));
}

} // namespace orizuru::detail
