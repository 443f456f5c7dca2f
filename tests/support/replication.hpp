// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Makes one server follow another.

#pragma once

#include "eventually.hpp"
#include "redis_client.hpp"
#include "redis_server.hpp"

#include <chrono>
#include <stdexcept>
#include <string>

namespace orizuru::test {

/// Makes a server the replica of another, which listens on TCP. Returns when it has all of its
/// data.
inline void follow(RedisClient& replica, const RedisServer& primary) {
    replica.command({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())});
    const bool connected =
        eventually([&] { return replica.command({"ROLE"}).elements.at(3).text == "connected"; },
                   std::chrono::seconds(30));
    if (!connected) {
        throw std::runtime_error("the replica does not come to follow");
    }
}

} // namespace orizuru::test
