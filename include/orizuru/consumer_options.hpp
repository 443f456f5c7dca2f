// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a Consumer.

#include <orizuru/event.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace orizuru {

/// Chooses when an ack reaches Redis. In either mode, a message whose ack has not reached Redis
/// when the process dies is redelivered, and may be the one blamed for the death
/// (GarbageCollectorOptions::blamed).
enum class AckMode {
    immediate, ///< ack() returns when Redis has answered
    deferred   ///< ack() returns at once; the next fetch, flush(), the stop or a timer of at most
               ///< a third of the lease sends the acks
};

/// Options of a Consumer or an AsyncConsumer. Their constructors throw std::invalid_argument for
/// those out of range.
struct ConsumerOptions {
    /// Label in the consumer's id, for people: 1 to 100 of A-Z a-z 0-9 _ . - Any but the default
    /// also names its connections (CLIENT SETNAME) where the address has no client_name; a user
    /// without the right to that connects nevertheless.
    std::string name = "consumer";

    /// Time the consumer may go unheard before a collector gives its messages to others; 100 ms to
    /// 24 h. A thread sends three beats in each lease, whatever the handler does.
    std::chrono::milliseconds lease = std::chrono::seconds(30);

    /// The most messages that one fetch takes, 1 to 1000. Above 1, `next` requests another batch
    /// when it hands out the first message of a full one, so that Redis fetches while the handler
    /// works; the consumer then holds up to twice as many. When it stops, it requeues messages that
    /// it has not handed out.
    int prefetch = 1;

    /// Chooses if ack() waits for Redis; deferred acks share round trips.
    AckMode ack = AckMode::immediate;

    /// Larger payloads go to the dead list undecoded, with DecodeError; the guard's push refuses
    /// them with EncodeError. In bytes, up to 512 MiB.
    std::int64_t max_payload = std::int64_t{16} << 20;

    /// Called with background events, on any thread, with no lock held; its exceptions are
    /// swallowed. A slow one can delay a beat: it should return well within a third of the lease.
    /// The default writes lines to stderr.
    std::function<void(const Event&)> on_event = write_event;

    /// Called after each beat that Redis confirms, on a thread of its own; its exceptions are
    /// swallowed. A slow one delays no beat: it is called once for all beats that came meanwhile.
    /// All it refers to must outlive the consumer and its guards: unsettled ones keep beats going.
    std::function<void()> on_beat = {};
};

} // namespace orizuru
