// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Exceptions by which a handler, or a function that a Ledger runs, says that a job is not to be
// tried again.

#include <stdexcept>

namespace orizuru {

/// Thrown by a handler: the job, or each of its batch that is not settled, is not tried again. What
/// becomes of it RetryPolicy::exhausted says; what() is the reason. Thrown by a function that a
/// Ledger runs: the job is dead in the ledger, with what() as its error.
class DoNotRetry : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Thrown by a handler: the job, or each of its batch that is not settled, has failed and is acked,
/// since nobody needs it any more; what() is the reason that on_event hears.
class Discard : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

} // namespace orizuru
