// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Pushes messages to a queue over many shards.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/owned.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/shards/sharded_producer_core.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/producer_options.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

/// @cond
// For a T without a Codec that can encode it.
template <class T>
class ShardedProducer : detail::NoCodec<T, detail::Coding::encode> {
    using detail::NoCodec<T, detail::Coding::encode>::NoCodec;
};
/// @endcond

/// Pushes messages to the shards of one queue, for one thread at a time: a connection for each
/// shard, made when the shard is first pushed to.
///
/// As Producer, when an operation returns, Redis has the messages; when it throws,
/// ConnectionError::in_doubt() says whether Redis may still have them, and you can use it again.
///
/// A push without a key goes to the shards in turn. When one certainly has not taken it, because
/// its server refuses or cannot be reached, the next one gets it, and the failed one rests for 1 s,
/// or 20 times as long as it has blocked: a server that hangs blocks for connect_timeout, which
/// should be short here. It throws when all shards have failed, and at once when it is in doubt,
/// as when too few of `replicas` have it: these are replicas of the shard's server.
template <MessageEncodable T>
class ShardedProducer<T> {
  public:
    /// Connects to read how many shards there are: GET. Throws as Producer's constructor does, and
    /// std::logic_error for a queue without shards.
    [[gnu::cold]] ShardedProducer(Endpoint endpoint, std::string queue,
                                  ProducerOptions options = {})
        : m_core(std::make_unique<detail::ShardedProducerCore>(std::move(endpoint),
                                                               std::move(queue), options)) {}

    /// Pushes one message to any shard; returns that shard's length after it.
    /// Redis: LPUSH, O(1). Blocks and throws as Producer::push, for each shard that it tries.
    std::uint64_t push(const T& message) {
        return m_core->push([&](std::string& out) { return encode(message, out); });
    }

    /// Pushes one message to the key's shard; returns its length after it. Messages with the same
    /// key are in one shard, so in order, unless the number of shards changes. All bytes of
    /// the key count: the shard is CRC-16/XMODEM modulo 16384, times the number of shards, by
    /// 16384. Redis: LPUSH, O(1). Blocks and throws as Producer::push.
    std::uint64_t push(std::string_view key, const T& message) {
        return m_core->push_to(key, [&](std::string& out) { return encode(message, out); });
    }

    /// Pushes many messages, one LPUSH of up to 1000 messages or 1 MiB after the other, each to the
    /// next shard; returns how many. Messages that lie in one shard are in their order.
    /// Blocks and throws as push(message). The messages before messages[Error::pushed()] are
    /// certainly in the queue; those behind are not, but when the error is in doubt, the next up to
    /// 1000 may be. An exception of the range passes through.
    template <RangeOf<T> R>
    std::uint64_t push_all(R&& messages) {
        auto at = std::ranges::begin(messages);
        const auto end = std::ranges::end(messages);
        return m_core->push_all([&](std::string& out) {
            if (at == end) {
                return false;
            }
            const T& message = *at;
            encode(message, out);
            ++at;
            return true;
        });
    }
    /// Does the same for a list in braces.
    std::uint64_t push_all(std::initializer_list<T> messages) {
        return push_all<const std::initializer_list<T>&>(messages);
    }

    /// Reads anew how many shards there are, after use_shards; a push to a retired shard does that
    /// by itself. Connects: GET. Throws as the constructor does, and then changes nothing.
    void reload() { m_core->reload(); }

    /// The name of a key's shard: a queue, for a JobProducer of its own, say. Valid until the
    /// next reload().
    [[nodiscard]] const std::string& shard_of(std::string_view key) const {
        return m_core->shard_of(key);
    }

  private:
    bool encode(const T& message, std::string& out) const {
        detail::encode(message, out, m_core->options().max_payload);
        return true;
    }

    detail::Owned<std::unique_ptr<detail::ShardedProducerCore>, "sharded producer"> m_core;
};

} // namespace orizuru
