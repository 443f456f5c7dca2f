// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The events of an OutboxRelay, handed to OutboxRelayOptions::on_event.

#include <orizuru/detail/base/line_writer.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace orizuru {

/// Kinds of failures of an OutboxRelay.
enum class OutboxEventKind {
    refused,        ///< Redis has refused the messages of `queue`
    redis_failed,   ///< Redis cannot be reached, or ends the connection at `queue`
    postgres_failed ///< PostgreSQL cannot be reached, or fails at `queue`
};

/// A failure; the relay tries again after `retry_in`. When there is a `queue`, it alone waits, and
/// the others go on. The views are valid during the call of `on_event` only. What `on_event` throws
/// is swallowed.
struct OutboxEvent {
    OutboxEventKind kind;                    ///< names the failure
    std::string_view queue = {};             ///< its name; empty if all queues wait
    std::string_view detail = {};            ///< the what() of the error
    std::chrono::milliseconds retry_in = {}; ///< time until the next try
};

/// The enumerator's name, for log lines.
[[nodiscard]] constexpr std::string_view to_string(OutboxEventKind kind) noexcept {
    switch (kind) {
    case OutboxEventKind::refused:
        return "refused";
    case OutboxEventKind::redis_failed:
        return "redis_failed";
    case OutboxEventKind::postgres_failed:
        return "postgres_failed";
    }
    return "unknown";
}

/// Writes the time (UTC) and a line to stderr (descriptor 2). The default of
/// OutboxRelayOptions::on_event. Drops it when stderr has no room at once, and says so later, as a
/// worker's default does.
inline void write_outbox_event(const OutboxEvent& event) {
    std::string line = "orizuru: outbox " + std::string(to_string(event.kind));
    if (!event.queue.empty()) {
        line.append(" queue=").append(event.queue);
    }
    line += " retry_in=" + std::to_string(event.retry_in.count()) + "ms ";
    detail::write_stderr_line(line.append(event.detail));
}

} // namespace orizuru
