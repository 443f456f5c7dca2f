// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a Once.

#include <chrono>

namespace orizuru {

/// Options of a Once.
struct OnceOptions {
    /// Time a claim holds unless it is renewed; 100 ms to 24 h. With renewal from a consumer's
    /// beats, at least the consumer's lease, of which each has three.
    std::chrono::milliseconds lease = std::chrono::seconds(30);
    /// Time for which Redis remembers that an id is done, with its result; 1 ms to 100 years.
    /// Choose it longer than the id can come again. Redis remembers a claim for as long after its
    /// lease.
    std::chrono::milliseconds remember = std::chrono::hours(24);
};

} // namespace orizuru
