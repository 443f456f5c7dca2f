// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of an OutboxRelay.

#include <orizuru/postgres/outbox_event.hpp>

#include <chrono>
#include <functional>

namespace orizuru {

/// Options of an OutboxRelay.
struct OutboxRelayOptions {
    /// The most messages of a step, 1 to 1000. There are fewer when these have over 1 MiB.
    int batch = 1000;
    /// The longest time between two looks of a relay, in case no NOTIFY wakes it: 100 ms to 24 h.
    std::chrono::milliseconds sweep = std::chrono::seconds(30);
    /// Called by the thread that is in the relay: while it blocks, nothing is sent.
    std::function<void(const OutboxEvent&)> on_event = write_outbox_event;
};

} // namespace orizuru
