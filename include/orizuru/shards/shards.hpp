// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue over many shards: for more messages than one server has memory for, for many single
// pushes with appendfsync always, or so that a dead server stops a part of the queue only. One
// server handles one to three million messages a second in batches: batches and several queues
// come first.
//
// A shard is an ordinary queue, named Q#n. In a Cluster the shards spread evenly over the masters.
// Messages are in order within a shard, and never move to another one. Redis keeps how many there
// are in orizuru:{Q}:shards. To change that without losing a message:
//
//   add_shards(endpoint, "orders", 32);     // consumers that start from now on read these, too
//                                           // restart all consumers and workers
//   use_shards(endpoint, "orders", 32);     // producers push to them
//                                           // wait until the former shards are empty
//   retire_shards(endpoint, "orders");      // nobody reads the former ones any more
//
// Twice as many contain the former ones, so that half of the queue stays where it is.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/endpoint.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace orizuru {

// Each of these connects, and throws as Connection does; std::invalid_argument for a queue name
// that Keys refuses or that has a hash tag, which would put all shards into one slot, and for a
// number that is not 1 to 1024; std::logic_error for a queue without shards. They may run again,
// also after a failure in the middle, and several at once.

/// Creates the shards of a queue. Does nothing if it has as many; throws std::logic_error if it has
/// another number. Redis: a script for each shard and one for the number.
void create_shards(const Endpoint& endpoint, const std::string& queue, std::size_t count);

/// The names of all shards that have to be read. Redis: GET, O(1).
[[nodiscard]] std::vector<std::string> shards(const Endpoint& endpoint, const std::string& queue);

/// Has consumers read this many shards, too. Redis: a script for each shard and one for the number.
void add_shards(const Endpoint& endpoint, const std::string& queue, std::size_t count);

/// Has producers push to this many shards. Those that run push to the former ones until they
/// reload() or are made anew. Throws std::logic_error for a number that is not read.
/// Redis: a script for each shard and one for the number.
void use_shards(const Endpoint& endpoint, const std::string& queue, std::size_t count);

/// Ends the shards to which producers no longer push; returns their names. From then on Redis
/// refuses each push to them as WRONGTYPE, so that no message can get lost in them; a
/// ShardedProducer then reloads, and consumers that still read them are refused.
/// Throws ReplyError with the code NOTEMPTY for a shard that has messages: waiting, rejected,
/// suspected, scheduled, dead, or held by a registered consumer; then all go on as before. Redis: a
/// script for each of them, O(its consumers), and one for the number.
std::vector<std::string> retire_shards(const Endpoint& endpoint, const std::string& queue);

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/shards/shards.ipp>
#endif
