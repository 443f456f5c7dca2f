// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The events of a LedgerReconciler, handed to LedgerReconcilerOptions::on_event.

#include <orizuru/detail/base/line_writer.hpp>

#include <string>
#include <string_view>

namespace orizuru {

/// Kinds of events of a LedgerReconciler.
enum class LedgerEventKind {
    lease_ended,  ///< a job's worker went unheard: it is pending again; detail: whose lease ended
    died,         ///< a job is dead: unheard or buried in its last try, or expired; detail: why
    buried,       ///< a job's message is on the dead list: it has failed; detail: why
    message_lost, ///< a job's message was gone from Redis: it is sent again
    redis_lost,   ///< Redis is empty, or went back in time: all that is pending is sent again;
                  ///< detail: what it has, and what it should have
    postgres_replaced, ///< by a standby or from a backup: all that is pending is sent again
    failed, ///< a queue, or all of them, could not be looked after; detail: why; tried again
    held ///< a job was not forgotten, as a foreign key of yours refers to it, or a transaction has
         ///< locked it; detail: which
};

/// One thing that happened, and is committed. The views are valid during the call of `on_event`
/// only.
///
/// `on_event` is called by the reconciler's thread, with no lock held; what it throws is swallowed.
/// While it blocks, nothing is looked after.
struct LedgerEvent {
    LedgerEventKind kind;         ///< says which fact `detail` gives
    std::string_view queue = {};  ///< its name; empty if it is about all queues
    std::string_view job_id = {}; ///< empty if it is about no single job
    std::string_view detail = {}; ///< text for people; empty if there is no more to say
};

/// The enumerator's name, for log lines.
[[nodiscard]] constexpr std::string_view to_string(LedgerEventKind kind) noexcept {
    switch (kind) {
    case LedgerEventKind::lease_ended:
        return "lease_ended";
    case LedgerEventKind::died:
        return "died";
    case LedgerEventKind::buried:
        return "buried";
    case LedgerEventKind::message_lost:
        return "message_lost";
    case LedgerEventKind::redis_lost:
        return "redis_lost";
    case LedgerEventKind::postgres_replaced:
        return "postgres_replaced";
    case LedgerEventKind::failed:
        return "failed";
    case LedgerEventKind::held:
        return "held";
    }
    return "unknown";
}

/// Writes a line to stderr (descriptor 2). The default of LedgerReconcilerOptions::on_event; to
/// switch it off, pass `[](const LedgerEvent&) {}`. It never waits for room, as write_event.
inline void write_ledger_event(const LedgerEvent& event) {
    std::string line = "orizuru: ledger ";
    line.append(to_string(event.kind));
    const auto add = [&line](std::string_view name, std::string_view value) {
        if (!value.empty()) {
            line.append(" ").append(name).append(value);
        }
    };
    add("queue=", event.queue);
    add("job=", event.job_id);
    add("", event.detail);
    detail::write_stderr_line(line);
}

} // namespace orizuru
