// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a BufferedProducer.

#include <chrono>
#include <cstdint>

namespace orizuru {

struct BufferedProducerOptions {
    /// push() refuses larger payloads with EncodeError and does not accept them. In bytes, up to
    /// 512 MiB; keep it at or below the consumers' max_payload.
    std::int64_t max_payload = std::int64_t{16} << 20;

    /// How many messages one LPUSH carries, 1 to 1000, and at most about 1 MiB of them. The
    /// producer keeps up to three times as many in memory.
    int size = 100;

    /// The longest time that a message waits for others while Redis is reachable, 1 ms to 24 h.
    std::chrono::milliseconds time = std::chrono::milliseconds(10);
};

} // namespace orizuru
