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
    /// Number of jobs of one key that a thread may handle one behind another and settle together,
    /// for throughput: 1 to 1000. Over 1, the handler must end its jobs by its return, a death of
    /// the worker redelivers up to so many, in their order, and `JobContext::guard` throws
    /// std::logic_error. Redis: one script more for each turn of a key, O(burst); it reads at most
    /// a mebibyte, and ten jobs.
    int burst = 1;
};

} // namespace orizuru
