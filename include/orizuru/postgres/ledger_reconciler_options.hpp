// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a LedgerReconciler, and the result of a pass.

#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/postgres/ledger_event.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace orizuru {

/// Options of a LedgerReconciler.
struct LedgerReconcilerOptions {
    /// Time between two sweeps, which look after all queues, whatever is due, and search them for
    /// lost messages; 100 ms to 24 h. A message must be this old before it can be found to be gone;
    /// twice as old each time that it was sent again in vain, up to an hour.
    std::chrono::milliseconds sweep = std::chrono::seconds(30);
    /// Time between two checks for a lost Redis: a GET for each queue; 10 ms to 24 h.
    std::chrono::milliseconds redis_check = std::chrono::seconds(1);
    /// Forgets jobs, with their history and results, that are completed or dead for longer; 0 to
    /// 100 years. With each sweep, a thousand at a time between other work. Empty: never; see
    /// Ledger::purge. Takes the rights of TableUse::purge. A job to which a foreign key of a table
    /// of yours refers stays, is told of, and is tried again an hour later.
    std::optional<std::chrono::seconds> purge_after = {};
    /// The default writes lines to stderr.
    std::function<void(const LedgerEvent&)> on_event = write_ledger_event;
    /// Decides when a job whose message was buried is tried again: `backoff` and `retry_for`, as in
    /// LedgerOptions; choose them as there. The rest must be as it is there, too.
    RetryPolicy retry = {};
};

/// Result of a pass, in jobs.
struct Reconciled {
    std::uint64_t sent = 0;        ///< messages
    std::uint64_t lease_ended = 0; ///< from running to pending
    std::uint64_t retried = 0;     ///< from failed to pending
    std::uint64_t died = 0;        ///< to dead, because a lease has ended, a message was buried or
                                   ///< the job has expired
    std::uint64_t buried = 0;      ///< to failed, as the message was buried
    std::uint64_t lost = 0;        ///< those of `sent` that were gone
    std::uint64_t purged = 0;      ///< forgotten
    std::uint64_t held = 0;        ///< not forgotten: see LedgerEventKind::held
};

} // namespace orizuru
