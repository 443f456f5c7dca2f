// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What can be chosen for a Producer.

#include <chrono>
#include <cstdint>

namespace orizuru {

struct ProducerOptions {
    /// Larger payloads are refused with EncodeError before anything is sent. In bytes, up to
    /// 512 MiB; keep it at or below that of the consumers.
    std::int64_t max_payload = std::int64_t{16} << 20;

    /// With 1 to 1000, push() puts messages into a buffer and returns at once; they go to Redis in
    /// LPUSHes of at most so many, or about 1 MiB. Up to three of these are held in memory. What is
    /// in the buffer when the process dies was never pushed: flush() first. With 0 push() returns
    /// when Redis has the message.
    int buffer = 0;

    /// The longest that a message waits in the buffer while nobody calls and Redis can be reached,
    /// 1 ms to 24 h. A thread of the producer sees to it. Without a buffer it means nothing.
    std::chrono::milliseconds buffer_time = std::chrono::milliseconds(10);
};

} // namespace orizuru
