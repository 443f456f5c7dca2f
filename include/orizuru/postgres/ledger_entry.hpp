// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job's entry in the ledger, and the history of its changes. All times are the database's.

#include <orizuru/jobs/job_time.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace orizuru {

/// State of a job: `pending` waits for a run, `running` is claimed by a worker, `failed` waits for
/// its next try. `completed` is final, and so is `dead`, unless somebody revives the job.
enum class LedgerState { pending, running, completed, failed, dead };

/// The enumerator's name, as it is in the table.
[[nodiscard]] constexpr std::string_view to_string(LedgerState state) noexcept {
    switch (state) {
    case LedgerState::pending:
        return "pending";
    case LedgerState::running:
        return "running";
    case LedgerState::completed:
        return "completed";
    case LedgerState::failed:
        return "failed";
    case LedgerState::dead:
        return "dead";
    }
    return "unknown";
}

/// A job in a ledger, without its payload and its result. Times are by the database's clock.
struct LedgerEntry {
    std::string id;             ///< 32 hexadecimal digits, or that given to submit_once
    std::string queue;          ///< name of the queue that its message goes to
    LedgerState state;          ///< after its last change
    int attempt;                ///< number of its claims
    int max_attempts;           ///< number of claims after which it is not tried again
    std::string worker;         ///< the worker that claimed it last; empty = none yet
    std::optional<JobTime> due; ///< pending: if it is later, the first try; failed: the next one;
                                ///< running: the lease's end
    std::string error;          ///< why the last try that failed did; in ASCII, with `\u20ac` and
                                ///< the like, where the database's encoding lacks a character
    JobTime created_at;         ///< time at which it was submitted
    JobTime changed_at;         ///< time of its last claim or change of state
    std::string changed_by;     ///< who changed it last, as LedgerChange::who
    std::optional<JobTime> finished_at; ///< completion or death; empty = it has not ended
    std::optional<JobTime> expires_at;  ///< no try begins from then on
};

/// One change of a job's state. `running` to `running`: a worker took it from one whose lease had
/// ended.
struct LedgerChange {
    JobTime at;      ///< time of the change, by the database's clock
    std::string who; ///< a worker, a reconciler, or the database's user that changed it by SQL
    std::optional<LedgerState> from; ///< none: it was submitted
    LedgerState to;                  ///< the state from then on
    int attempt;                     ///< number of its claims by then
    std::string note;                ///< why it failed, died or had to be given to another
};

} // namespace orizuru
