// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a Ledger, and the outcomes of a run.

#include <orizuru/jobs/retry_policy.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace orizuru {

/// Which changes of a job's state the ledger notes.
enum class LedgerHistory {
    all,     ///< each change
    failures ///< failed tries, leases that ended, deaths and revivals
};

/// Options of a Ledger.
struct LedgerOptions {
    /// Label in this worker's name in the ledger, for people: 1 to 100 of A-Z a-z 0-9 _ . -
    std::string name = "worker";
    /// Time a run whose process has died, or cannot reach PostgreSQL, keeps its job from others;
    /// 100 ms to 24 h. As long as it lives the ledger renews it, whatever it does.
    std::chrono::milliseconds lease = std::chrono::seconds(30);
    /// Decides when a job that failed is tried again. The Ledger that runs a job gives `backoff`
    /// and `retry_for`; the Ledger that submits it gives `max_attempts`, and tries that ended with
    /// a worker's death count too. A job that will not be tried again is dead, in the ledger:
    /// `retry_queue` must be empty and `exhausted` as it is.
    RetryPolicy retry = {};
    /// Kind of the jobs that it submits, which chooses a Worker's handler; empty: the one without a
    /// kind. At most 100 bytes, no control character. Several Ledgers may submit to one queue, each
    /// for a type and a kind of its own; any of them runs all.
    std::string kind = {};
    /// The history of the jobs that it submits. With `failures` a job that goes well has none,
    /// which makes its run cheaper, above all in batches.
    LedgerHistory history = LedgerHistory::all;
    /// Larger jobs are refused with EncodeError. In bytes, with the envelope; up to 256 MiB, as
    /// PostgreSQL takes no value of 1 GiB.
    std::int64_t max_payload = std::int64_t{16} << 20;
};

/// Outcome of Ledger::run for one job.
enum class LedgerOutcome {
    completed, ///< the function has run, and is committed
    repeated,  ///< it was completed or dead before: nothing was done
    elsewhere, ///< another worker has it, and its lease holds: nothing was done
    not_due,   ///< its first or next try is later: nothing was done
    failed,    ///< the function threw: rolled back, it comes again
    dead,      ///< the function threw in the last try, or DoNotRetry; or the job was cancelled, or
               ///< its lease ended in the last try: rolled back, it does not come again; or it has
               ///< expired, and the function was not called
    fenced,    ///< the lease had ended and the job was taken from this run: rolled back
    unknown    ///< there is no such job
};

} // namespace orizuru
