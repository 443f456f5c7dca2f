// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Background events for a logger, passed to `on_event` of the options.

#include <orizuru/detail/base/line_writer.hpp>

#include <string>
#include <string_view>

namespace orizuru {

/// Kinds of events of consumers and collectors.
enum class EventKind {
    disconnected,       ///< a connection broke in use, or one that Redis had closed cannot be
                        ///< replaced; the consumer connects again; detail: why
    reconnected,        ///< the end of that, told once for each; detail: the address, after how
                        ///< long, and the last error: why it was lost or an attempt failed
    lease_lost,         ///< others took over messages that this consumer held; detail: how many
    redelivered,        ///< a fetch had run but its reply was lost; its message comes now
    decode_failed,      ///< an undecodable message is or, in an outage, will be on the dead list;
                        ///< detail: why; payload: its bytes
    late_settlement,    ///< a settlement ended after its caller gave up; detail: the outcome
    settlement_refused, ///< Redis refused one after its caller gave up; it is tried again, unless
                        ///< its guard still lives, which is unsettled then
    not_noeviction,     ///< Redis may evict the queue's keys; detail: its maxmemory_policy
    suspected,          ///< a collector has put a message apart that may have killed a consumer;
                        ///< detail: how often; consumer: which died
    buried,             ///< a collector buried a message that keeps killing consumers
    collect_failed, ///< a pass of a BackgroundCollector failed for a reason that only a person can
                    ///< fix; it is repeated after 5 s; detail: why
    slot_migrating, ///< a Cluster has been moving the queue's slot for 5 s: until it has moved,
                    ///< acks may run and nothing is fetched; detail: Redis' error
    sweep_refused,  ///< a collector may not run SCAN: it recovers the messages of registered
                    ///< consumers, but finds no lists whose registration Redis has lost;
                    ///< detail: Redis' error
    not_collected   ///< for a day or longer no collector has looked after the queue, or none ever
                    ///< has: what was rejected, and what dead consumers held, waits. Told once,
                    ///< by a consumer that has run for 20 leases or 10 minutes; also where
                    ///< collect() is only called by a program of version 0.1.0
};

/// One event. The views are valid only during the call of `on_event`.
///
/// The library calls `on_event` on any thread, with no lock held, and swallows its exceptions. It
/// may block, and what it blocks is a call of yours, a beat or a pass of a collector: give a log
/// without room to another thread, or drop its lines.
struct Event {
    EventKind kind;            ///< says which fact `detail` gives
    std::string_view queue;    ///< name of the queue that it is about
    std::string_view consumer; ///< id of the incarnation; empty without one
    std::string_view detail;   ///< text for people, as its kind says; may be empty
    std::string_view payload;  ///< bytes of the message that it is about; empty if it is about none
};

/// The enumerator's name, for log lines.
[[nodiscard]] constexpr std::string_view to_string(EventKind kind) noexcept {
    switch (kind) {
    case EventKind::disconnected:
        return "disconnected";
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
    case EventKind::suspected:
        return "suspected";
    case EventKind::buried:
        return "buried";
    case EventKind::collect_failed:
        return "collect_failed";
    case EventKind::slot_migrating:
        return "slot_migrating";
    case EventKind::sweep_refused:
        return "sweep_refused";
    case EventKind::not_collected:
        return "not_collected";
    }
    return "unknown";
}

/// Writes a line to stderr (descriptor 2), but none for `redelivered`, which concerns nobody. The
/// default of ConsumerOptions::on_event and GarbageCollectorOptions::on_event; to switch it off,
/// pass `[](const Event&) {}`. It never waits for room: see write_to_stderr of a Worker.
inline void write_event(const Event& event) {
    if (event.kind == EventKind::redelivered) {
        return;
    }
    std::string line = "orizuru: ";
    line.append(to_string(event.kind)).append(" queue=").append(event.queue);
    if (!event.detail.empty()) {
        line.append(" ").append(event.detail);
    }
    detail::write_stderr_line(line);
}

} // namespace orizuru
