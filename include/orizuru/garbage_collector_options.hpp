// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How a garbage collector works, and what a pass of it moved.

#include <orizuru/event.hpp>

#include <chrono>
#include <cstdint>
#include <functional>

namespace orizuru {

struct GarbageCollectorOptions {
    /// How often a message may be blamed for a consumer's death; once more and it goes to the dead
    /// list. Counts are forgotten when none was added for 72 h.
    int max_recoveries = 3;
    /// The most rejected messages that one step returns, 1 to 1000.
    int batch = 1000;
    /// No consumer is taken for dead before consumers have had this long to be heard, so that
    /// neither a restart nor a failover looks like everyone's death: Redis itself must be up for so
    /// long, and so must the collector's connection if that is not its first, if Redis has been a
    /// replica (it forgets that in an hour without replicas of its own), or if INFO is refused. If
    /// Redis became a replica and a primary again while the connection stayed open, the time counts
    /// from the pass that sees it in INFO.
    std::chrono::milliseconds grace = std::chrono::seconds(10);
    /// The most entries of the dead list when this collector buries; 0 = unbounded.
    std::int64_t dead_limit = 0;
    /// Told of buried messages, of an eviction policy that may lose messages, and of a SCAN that is
    /// refused.
    std::function<void(const Event&)> on_event = {};
    /// How many of the messages that a consumer held are blamed for its death, the oldest first; 1
    /// or more. One that handles n at once needs n, for any of them may have been the killer. One
    /// that lies beside a killer each time is buried with it; equal messages cannot be told apart,
    /// a death counts once for them. Collectors of one queue should agree: they count together.
    std::int64_t blamed = 1;
};

/// What one pass moved.
struct Collected {
    std::uint64_t unacked = 0;   ///< rejected messages returned to the source's far end
    std::uint64_t reclaimed = 0; ///< messages of dead consumers returned to its serving end
    std::uint64_t buried = 0;    ///< messages sent to the dead list
    std::uint64_t consumers = 0; ///< consumers found dead

    friend bool operator==(const Collected&, const Collected&) = default;
};

} // namespace orizuru
