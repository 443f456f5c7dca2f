// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of an Outbox.

#include <cstdint>
#include <string>

namespace orizuru {

/// The order in which a queue's messages are sent.
enum class OutboxOrder {
    /// A queue's messages are sent in the order of the commits. One transaction with a push commits
    /// at a time, and waits for the disk alone.
    commits,
    /// In no order: transactions commit side by side. Relays of a library before version 8 of the
    /// tables leave them.
    none
};

/// Options of an Outbox.
struct OutboxOptions {
    /// The prefix of the tables, see DatabaseOptions.
    std::string prefix = "orizuru_";
    /// Larger envelopes are refused with EncodeError. In bytes, up to 256 MiB, as PostgreSQL takes
    /// no value of 1 GiB; keep it at or below that of the consumers.
    std::int64_t max_payload = std::int64_t{16} << 20;
    /// Outboxes of one queue may differ: those in order stay so among themselves.
    OutboxOrder order = OutboxOrder::commits;
};

} // namespace orizuru
