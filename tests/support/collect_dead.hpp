// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Collects a queue's messages for a test after all consumers have gone, in whatever way.

#pragma once

#include "redis_client.hpp"

#include <orizuru/garbage_collector.hpp>

#include <stdexcept>
#include <string>

namespace orizuru::test {

/// Declares all consumers of a queue dead, and has a collector bring back their messages. `uri`
/// leads to the same Redis.
inline void collect_dead(RedisClient& redis, const std::string& uri, const std::string& queue) {
    for (const std::string& heartbeat : redis.keys("orizuru:{" + queue + "}:heartbeat:*")) {
        redis.del(heartbeat);
    }
    GarbageCollectorOptions options;
    options.max_recoveries = 1'000'000; // nothing is buried
    options.grace = {};
    GarbageCollector collector(uri, queue, options);
    // The sweep, which finds unregistered lists, takes two passes.
    for (int passes = 0, idle = 0; idle < 2; ++passes) {
        if (passes == 1000) {
            throw std::runtime_error("the collector finds something at every pass");
        }
        idle = collector.collect() == Collected{} ? idle + 1 : 0;
    }
}

} // namespace orizuru::test
