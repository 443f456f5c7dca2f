// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A limit for all processes that serve a queue together (Worker::limit).

#include <orizuru/limits/rate.hpp>

#include <optional>

namespace orizuru {

/// A limit for all processes together. All give the same one.
struct FleetLimit {
    /// At most so many of the queue's handlers run at once, 1 to 100,000; a batch counts as one.
    /// Empty: as many as can.
    std::optional<int> concurrency = {};
    /// At most so many of its jobs begin in any span of `per`, as RateLimit spaces them (limits/
    /// rate_limit.hpp). Empty: as fast as they can.
    std::optional<Rate> rate = {};
};

} // namespace orizuru
