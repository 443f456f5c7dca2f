// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A run of a ledger's job, from its claim to what has come of it.

#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/postgres/ledger/book.hpp>
#include <orizuru/detail/postgres/ledger/leases.hpp>
#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger_options.hpp>

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>

namespace orizuru::detail {

/// Completes a job that is claimed, and whose lease is held, together with `f`, or notes its
/// failure. Throws DatabaseError.
[[nodiscard]] inline LedgerOutcome finish_job(LedgerBook& book, const LedgerClaim& claim,
                                              const RetryPolicy& policy, const LedgerEffects& f) {
    try {
        return book.complete(claim, f);
    } catch (const DatabaseError&) {
        throw;
    } catch (const DoNotRetry& error) {
        return book.fail_for_good(claim, error.what());
    } catch (...) {
        return tell_thrown([&](std::string_view what) { return book.fail(claim, policy, what); });
    }
}

/// A job's function that is told when its claim is lost.
using LedgerStoppable = std::function<LedgerResult(pqxx::work&, const std::stop_token&)>;

/// Does the same, with the claim, by a name of LedgerBook::next_name.
[[nodiscard]] inline LedgerOutcome run_job(LedgerBook& book, std::string_view job,
                                           const std::string& name, const RetryPolicy& policy,
                                           const LedgerStoppable& f) {
    const auto claimed = book.claim(job, name);
    if (const auto* outcome = std::get_if<LedgerOutcome>(&claimed)) {
        return *outcome;
    }
    const auto& claim = std::get<LedgerClaim>(claimed);
    const std::stop_source lost;
    const LedgerLeases::Hold hold(book.leases(), {&claim, 1}, lost);
    return finish_job(book, claim, policy,
                      [&](pqxx::work& transaction) { return f(transaction, lost.get_token()); });
}

} // namespace orizuru::detail
