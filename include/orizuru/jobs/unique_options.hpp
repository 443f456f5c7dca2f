// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a unique job (unique.hpp).

#include <chrono>

namespace orizuru {

/// Event that ends a job's lock.
enum class UniqueRelease {
    on_ack,    ///< ack_unique, the removal of the job for good, or the end of its ttl
    on_expiry, ///< the end of its ttl alone
    never      ///< no event: the id is used once; its key stays in Redis for ever
};

/// Options of a unique job's lock.
struct UniqueOptions {
    /// Time the lock lasts, counted from when the job is due. Choose it longer than the job can
    /// wait and run, its retries included. 1 ms to 100 years; `never` has none.
    std::chrono::milliseconds ttl = std::chrono::hours(24);
    /// Chooses what ends the lock.
    UniqueRelease release = UniqueRelease::on_ack;
};

} // namespace orizuru
