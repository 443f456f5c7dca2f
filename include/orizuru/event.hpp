// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What happens behind the caller's back, for a logger: handed to `on_event` of the options.

#include <string_view>

namespace orizuru {

enum class EventKind {
    reconnected,        ///< a lost connection is back; detail: to where, after what
    lease_lost,         ///< others took over messages that this consumer held; detail: how many
    redelivered,        ///< a fetch whose reply was lost had run: its message is delivered now
    decode_failed,      ///< undecodable, on the dead list or, in an outage, on its way there;
                        ///< detail: why; payload: its bytes
    late_settlement,    ///< a settlement nobody waits for any more ended; detail: how
    settlement_refused, ///< Redis refused a settlement nobody waits for; it is tried again
    not_noeviction,     ///< Redis may evict the queue's keys; detail: its maxmemory_policy
    buried,             ///< a collector gave up on a message that keeps killing consumers
    sweep_refused       ///< a collector may not run SCAN: it brings back what registered consumers
                        ///< held, and cannot find lists whose registration Redis has lost;
                        ///< detail: Redis' words
};

/// One thing that happened. The views are valid during the call of `on_event` only.
///
/// `on_event` is called on any thread, with no lock held; what it throws is swallowed.
struct Event {
    EventKind kind;
    std::string_view queue;
    std::string_view consumer; ///< id of the incarnation; empty where there is none
    std::string_view detail;
    std::string_view payload;
};

/// The enumerator's name, for log lines.
[[nodiscard]] constexpr std::string_view to_string(EventKind kind) noexcept {
    switch (kind) {
    case EventKind::reconnected:
        return "reconnected";
    case EventKind::lease_lost:
        return "lease_lost";
    case EventKind::redelivered:
        return "redelivered";
    case EventKind::decode_failed:
        return "decode_failed";
    case EventKind::late_settlement:
        return "late_settlement";
    case EventKind::settlement_refused:
        return "settlement_refused";
    case EventKind::not_noeviction:
        return "not_noeviction";
    case EventKind::buried:
        return "buried";
    case EventKind::sweep_refused:
        return "sweep_refused";
    }
    return "unknown";
}

} // namespace orizuru
