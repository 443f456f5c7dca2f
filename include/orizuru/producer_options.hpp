// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a Producer. All producers that wait for replicas share Replicas.

#include <chrono>
#include <cstdint>

namespace orizuru {

/// Replicas that must have a push before it is confirmed, so that a failover to one keeps it.
struct Replicas {
    int count = 0; ///< 0: waits for none
    /// Time a push waits for them, besides command_timeout. One that a node of a Cluster sends on
    /// may wait as long for the replicas of that node first.
    std::chrono::milliseconds within = std::chrono::seconds(1);
};

/// Options of a Producer, an AsyncProducer or a ShardedProducer. Their constructors throw
/// std::invalid_argument for those out of range.
struct ProducerOptions {
    /// push() refuses larger payloads with EncodeError before it sends anything. In bytes, up to
    /// 512 MiB; keep it at or below the consumers' max_payload.
    std::int64_t max_payload = std::int64_t{16} << 20;
    /// With a count, a WAIT goes out behind each LPUSH and each command() of your own, without a
    /// round trip of its own. If fewer replicas confirm, the call throws a ConnectionError that is
    /// in doubt: the command has run, and a failover may lose what it did.
    Replicas replicas = {};
};

} // namespace orizuru
