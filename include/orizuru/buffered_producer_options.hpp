// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What can be chosen for a BufferedProducer.

#include <chrono>
#include <cstdint>

namespace orizuru {

struct BufferedProducerOptions {
    /// Larger payloads are refused with EncodeError before they are accepted. In bytes, up to
    /// 512 MiB; keep it at or below that of the consumers.
    std::int64_t max_payload = std::int64_t{16} << 20;

    /// How many messages go to Redis in one LPUSH, 1 to 1000; about 1 MiB of them at most. The
    /// producer keeps up to three times as many in memory.
    int size = 100;

    /// The longest that a message waits for others while Redis can be reached, 1 ms to 24 h.
    std::chrono::milliseconds time = std::chrono::milliseconds(10);
};

} // namespace orizuru
