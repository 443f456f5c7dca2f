// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a BufferedProducer.

#include <orizuru/producer_options.hpp>

#include <chrono>
#include <cstdint>

namespace orizuru {

/// Options of a BufferedProducer. Its constructor throws std::invalid_argument for those out of
/// range.
struct BufferedProducerOptions {
    /// push() refuses larger payloads with EncodeError and does not accept them. In bytes, up to
    /// 512 MiB; keep it at or below the consumers' max_payload.
    std::int64_t max_payload = std::int64_t{16} << 20;

    /// The most messages that one LPUSH carries, 1 to 1000, and at most about 1 MiB of them. The
    /// producer keeps up to three times as many in memory.
    int size = 100;

    /// The longest time that a message waits for others while Redis is reachable, 1 ms to 24 h.
    std::chrono::milliseconds time = std::chrono::milliseconds(10);

    /// With a count, a WAIT goes out behind each LPUSH, and confirms its messages. When fewer
    /// replicas have them, they stay in the buffer, though they are in the queue: flush() throws a
    /// ConnectionError that is in doubt, and the producer repeats the WAIT alone, so nothing comes
    /// twice. When the connection is lost meanwhile, or its server has become a replica, only a
    /// second LPUSH can bring the messages where a failover keeps them: the producer sends it, and
    /// they may then be in the queue twice. It also does so while a Cluster moves the queue.
    Replicas replicas = {};
};

} // namespace orizuru
