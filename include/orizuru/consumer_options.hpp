// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What can be chosen for a Consumer.

#include <orizuru/event.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace orizuru {

/// When an ack reaches Redis. Whichever is chosen, a message whose ack has not reached Redis when
/// the process dies is delivered again, and may be the one that is blamed for the death
/// (GarbageCollectorOptions::blamed).
enum class AckMode {
    immediate, ///< ack() returns when Redis has answered
    deferred   ///< ack() returns at once; the acks ride on the next fetch, on flush(), on a timer
               ///< no longer than a third of the lease, or on stop
};

struct ConsumerOptions {
    /// Label in the consumer's id, for people: 1 to 100 of A-Z a-z 0-9 _ . -
    std::string name = "consumer";

    /// How long the consumer may go unheard before a collector gives its messages to others;
    /// 100 ms to 24 h. A thread of the consumer is heard three times in each lease, whatever the
    /// handler does.
    std::chrono::milliseconds lease = std::chrono::seconds(30);

    /// The most messages that one fetch takes, 1 to 1000. Above 1, `next` asks for another batch
    /// when it hands out the first message of a full one, so that Redis fetches while the handler
    /// works; up to twice as many are held then. What was not handed out goes back when the
    /// consumer stops.
    int prefetch = 1;

    AckMode ack = AckMode::immediate;

    /// Larger payloads go to the dead list unread, as DecodeError; the guard's push refuses them
    /// with EncodeError. In bytes, up to 512 MiB.
    std::int64_t max_payload = std::int64_t{16} << 20;

    /// Told what happens in the background, on any thread, with no lock held; what it throws is
    /// swallowed. A slow one can delay a beat: it should be done well within a third of the lease.
    std::function<void(const Event&)> on_event = {};

    /// Called after each beat that Redis confirmed, on the beat's thread; what it throws is
    /// swallowed. A slow one delays the next beat; one that takes as long as the lease loses it.
    /// What it refers to must outlive the consumer and its guards: one that is not settled keeps
    /// the beats going.
    std::function<void()> on_beat = {};
};

} // namespace orizuru
