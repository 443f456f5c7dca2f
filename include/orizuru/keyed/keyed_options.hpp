// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a queue with keys.

#include <chrono>

namespace orizuru {

/// Options of Worker::handle_keyed.
struct KeyedOptions {
    /// Time between two searches for keys that stand still because somebody has taken the job that
    /// is out away: LREM on the queue, a purge of the dead list within seconds of a burial. A key
    /// goes on when two searches find its job nowhere. One worker of the queue searches. 1 s to
    /// 24 h. Redis: two SCANs of all keys, and where there are keys, two reads of all that waits,
    /// is held, scheduled, rejected, suspected and dead.
    std::chrono::milliseconds sweep_interval = std::chrono::minutes(10);
};

} // namespace orizuru
