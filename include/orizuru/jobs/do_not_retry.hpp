// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Exceptions by which a handler, or a function that a Ledger runs, says that a job is not to be
// tried again.

#include <stdexcept>

namespace orizuru {

/// Says that a job is not to be tried again; what() is the reason. Thrown by a handler:
/// RetryPolicy::exhausted decides what happens to the job, or to each of its batch that is not
/// settled. Thrown by a function that a Ledger runs: the job is dead in the ledger, with what() as
/// its error.
class DoNotRetry : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Says that nobody needs a job any more. Thrown by a handler: the job, or each of its batch that
/// is not settled, has failed and is acked; what() is the reason that on_event hears.
class Discard : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

} // namespace orizuru
