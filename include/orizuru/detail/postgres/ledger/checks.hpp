// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Checks the options of a Ledger and of a LedgerReconciler.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/postgres/ledger_job_options.hpp>
#include <orizuru/postgres/ledger_options.hpp>
#include <orizuru/postgres/ledger_reconciler_options.hpp>

#include <chrono>
#include <stdexcept>

namespace orizuru::detail {

inline void check_ledger_retry(const RetryPolicy& retry) {
    if (retry.max_attempts < 1) {
        throw std::invalid_argument("max_attempts of a ledger must be 1 or more");
    }
    if (!retry.retry_queue.empty() || retry.exhausted != Exhausted::bury || retry.decide) {
        throw std::invalid_argument("a ledger keeps a job in its queue, and the dead ones itself: "
                                    "retry_queue, exhausted and decide cannot be chosen");
    }
}

inline void validate(const LedgerOptions& options) {
    check_label(options.name);
    check_stored_payload(options.max_payload);
    check_kind(options.kind);
    check_time("lease", options.lease, std::chrono::milliseconds(100));
    check_ledger_retry(options.retry);
}

inline void validate(const LedgerReconcilerOptions& options) {
    check_time("sweep", options.sweep, std::chrono::milliseconds(100));
    check_time("redis_check", options.redis_check, std::chrono::milliseconds(10));
    if (options.purge_after) {
        check_age(*options.purge_after);
    }
    check_ledger_retry(options.retry);
}

inline void validate(const LedgerJobOptions& options) {
    constexpr std::chrono::hours longest(24 * 365 * 100);
    if (options.delay > longest) {
        throw std::invalid_argument("the delay of a ledger's job must be up to 100 years");
    }
    if (options.at && (*options.at < JobTime() || *options.at > latest_job_time)) {
        throw std::invalid_argument("a ledger's job must be due in the years 1970 to 9999");
    }
    if (const auto& after = options.expires_after;
        after && (after->count() < 1 || *after > longest)) {
        throw std::invalid_argument("a ledger's job must expire 1 ms to 100 years after it is due");
    }
    if (options.max_attempts.value_or(1) < 1) {
        throw std::invalid_argument("max_attempts of a ledger's job must be 1 or more");
    }
}

} // namespace orizuru::detail
