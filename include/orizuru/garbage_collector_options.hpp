// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a GarbageCollector, and the result of one pass.

#include <orizuru/event.hpp>

#include <chrono>
#include <cstdint>
#include <functional>

namespace orizuru {

/// Options of a GarbageCollector or a BackgroundCollector. Their constructors throw
/// std::invalid_argument for those out of range.
struct GarbageCollectorOptions {
    /// Number of times that a message may be blamed for a consumer's death; the next time it goes
    /// to the dead list. The counts expire 72 h after the last one was added.
    int max_recoveries = 3;
    /// The most rejected messages that one step requeues, 1 to 1000.
    int batch = 1000;
    /// Bounds the time for which Redis must take the queue's writes before a missing heartbeat
    /// counts, so that neither a restart nor a failover, nor refused or held writes look like
    /// everyone's death. 0: a missing heartbeat is enough; 24 h at most.
    ///
    /// Redis must have taken writes without a break for the consumer's lease, or for `grace` less
    /// the collector's interval if that is shorter, and for half the lease at least. So a dead
    /// consumer is found within its lease plus the longer of `grace` and two passes, even where it
    /// was the last to write. A collector that Redis has refused for now, or that lost its
    /// connection, may have seen the second of two outages. It waits until a living consumer has
    /// had time to beat again: for its own command_timeout, or a third of the lease, and up to 1 s
    /// more. A consumer of 0.1.0 does not tell its lease; for it, the time is `grace`, and no more.
    /// Without the right to GET, PTTL and SET on its key the collector counts these times from its
    /// own connection.
    std::chrono::milliseconds grace = std::chrono::seconds(10);
    /// The most entries that the dead list keeps when this collector buries; 0 = unbounded. At most
    /// 1000 more go at a time than it buries; unique jobs release their locks (unique.hpp). Without
    /// the right to GET and DEL the lock of one that is to go, all stay, and the list grows.
    std::int64_t dead_limit = 0;
    /// Called for suspects, buried messages, an eviction policy that may lose messages, a refused
    /// SCAN, and a BackgroundCollector's failed pass. The default writes lines to stderr.
    std::function<void(const Event&)> on_event = write_event;
    /// Number of messages blamed for the death of the consumer that held them, the oldest first; 1
    /// or more. A consumer that handles n messages at once needs n, for any of them may have killed
    /// it. A Worker tells its own n in Redis, which counts instead. Collectors of one queue should
    /// agree: they count together.
    ///
    /// Several that are blamed are suspects and wait apart (Keys::suspects), if the living
    /// consumers can take them, or, where none lives, the dead one could have: all can but those of
    /// 0.1.0. A Worker holds at most n^(1 - c/3) suspects at a time, where one of them was blamed c
    /// times and none oftener; another consumer holds one. So the next deaths leave only the
    /// killer. An ack ends a suspect's count. Suspects that no consumer asks for within 10 minutes,
    /// or within its lease if that is longer, go back to the source once one lives. Equal messages
    /// share a count, which a death raises once, and so do attempts of a job.
    std::int64_t blamed = 1;
};

/// The counts of one pass.
struct Collected {
    std::uint64_t unacked = 0;   ///< rejected messages returned to the source's far end
    std::uint64_t reclaimed = 0; ///< messages of dead consumers returned to the serving end, or
                                 ///< to wait apart
    std::uint64_t buried = 0;    ///< messages sent to the dead list
    std::uint64_t consumers = 0; ///< consumers found dead
    std::uint64_t suspects = 0;  ///< those of `reclaimed` that wait apart

    /// True when all counts are equal.
    friend bool operator==(const Collected&, const Collected&) = default;
};

} // namespace orizuru
