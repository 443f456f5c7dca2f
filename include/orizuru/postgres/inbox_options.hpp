// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of an Inbox, and the outcomes of a run.

#include <chrono>
#include <exception>

namespace orizuru {

/// Options of an Inbox.
struct InboxOptions {
    /// Time a delivery waits while another one of the same id is being processed; 0 to 24 h.
    std::chrono::milliseconds wait = std::chrono::seconds(10);
};

/// Outcome for one id.
enum class InboxOutcome {
    ran,      ///< the function has run, and is committed
    repeated, ///< it was committed before: nothing was done
    busy,     ///< another transaction has had the id for as long as `wait`: nothing was done
    failed    ///< in a batch: the function threw for this id, and nothing was done
};

/// Result for one id in a batch.
struct InboxResult {
    InboxOutcome outcome = InboxOutcome::repeated; ///< says if the function has run for the id
    std::exception_ptr failure = nullptr;          ///< set if the outcome is `failed`
};

} // namespace orizuru
