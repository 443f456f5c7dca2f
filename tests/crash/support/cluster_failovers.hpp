// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Failovers of the node of a Cluster that has a key, and what they may lose.

#pragma once

#include "support/cluster.hpp"
#include "support/eventually.hpp"
#include "support/redis_client.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace orizuru::test {

/// Messages that were confirmed or delivered in this time may be lost: from when the replica was
/// last known to have everything, to when no client uses the old primary any more.
struct Gap {
    std::chrono::steady_clock::time_point begin;
    std::chrono::steady_clock::time_point end;
    std::chrono::steady_clock::time_point killed{}; ///< the old primary, before there was another
};

/// The replica of a node that is a master.
inline std::size_t replica_of(Cluster& cluster, std::size_t master) {
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        const Answer role = cluster.client(i).command({"ROLE"});
        if (role.elements.at(0).text == "slave" &&
            role.elements.at(2).integer == cluster.node(master).port()) {
            return i;
        }
    }
    throw std::runtime_error("a master has no replica");
}

/// The master that has the key: not this one, when another is to take over. Waits until there is
/// one.
inline std::size_t await_owner(Cluster& cluster, const std::string& key,
                               std::optional<std::size_t> old = {}) {
    std::optional<std::size_t> owner;
    Cluster::await([&] {
        owner = cluster.present_owner(key);
        return owner && owner != old;
    });
    return *owner;
}

/// Returns when all nodes that run know that this one has the key.
inline void await_agreement(Cluster& cluster, const std::string& key, std::size_t owner) {
    const std::string place = ":" + std::to_string(cluster.node(owner).port());
    Cluster::await([&] {
        for (std::size_t i = 0; i < cluster.size(); ++i) {
            if (i != owner && cluster.node(i).pid() > 0 &&
                !cluster.client(i).try_command({"TYPE", key}).text.ends_with(place)) {
                return false;
            }
        }
        return true;
    });
}

inline void await_replica(Cluster& cluster, const std::string& key) {
    Cluster::await([&] {
        return cluster.serves() && cluster.client(await_owner(cluster, key))
                                           .command({"INFO", "replication"})
                                           .text.find("state=online") != std::string::npos;
    });
}

/// Kills the node, and starts it again once its replica has taken over, which lacks what was done
/// for `unheard` before.
inline Gap kill_owner(Cluster& cluster, const std::string& key,
                      std::chrono::milliseconds unheard = std::chrono::milliseconds(0)) {
    const std::size_t old = await_owner(cluster, key);
    RedisServer& replica = cluster.node(replica_of(cluster, old));
    Gap gap{std::chrono::steady_clock::now(), {}};
    RedisClient redis = cluster.client(old);
    redis.command(
        {"SET", key.find('{') == std::string::npos ? "{" + key + "}probe" : key + "probe", "x"});
    if (redis.command({"WAIT", "1", "10000"}).integer < 1) {
        throw std::runtime_error("the replica does not follow");
    }
    if (unheard.count() > 0) {
        replica.pause(); // or it would connect again
        redis.command({"CLIENT", "KILL", "TYPE", "replica"});
        std::this_thread::sleep_for(unheard);
    }
    cluster.node(old).kill();
    gap.killed = std::chrono::steady_clock::now();
    if (unheard.count() > 0) {
        replica.resume();
    }
    // A node that comes back must find that it is no master any more: its data are of long ago.
    const std::size_t owner = await_owner(cluster, key, old);
    await_agreement(cluster, key, owner);
    cluster.node(old).restart();
    await_replica(cluster, key);
    if (cluster.owner(key) != owner) {
        throw std::runtime_error("a node that was killed is the master again");
    }
    gap.end = std::chrono::steady_clock::now();
    return gap;
}

/// Has the replica take over, without a loss.
inline void hand_over(Cluster& cluster, const std::string& key) {
    const std::size_t old = await_owner(cluster, key);
    const std::size_t replica = replica_of(cluster, old);
    // It gives up when it gets no votes within 5 s, for example soon after another failover.
    Cluster::await([&] {
        cluster.client(replica).try_command({"CLUSTER", "FAILOVER"});
        return eventually([&] { return cluster.present_owner(key) == replica; },
                          std::chrono::seconds(6));
    });
    await_agreement(cluster, key, replica);
    await_replica(cluster, key);
}

} // namespace orizuru::test
