// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of sharded_producer_core.hpp.

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/producer/replica_wait.hpp>
#include <orizuru/detail/shards/encoded_batch.hpp>
#include <orizuru/detail/shards/shard_layout.hpp>
#include <orizuru/detail/shards/shard_names.hpp>
#include <orizuru/detail/shards/shard_registry.hpp>
#include <orizuru/error.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE ShardedProducerCore::ShardedProducerCore(Endpoint endpoint, std::string&& queue,
                                                        ProducerOptions options)
    : m_endpoint(std::move(endpoint)), m_queue(std::move(queue)), m_options(options) {
    check_max_payload(options.max_payload);
    static_cast<void>(ReplicaWait(options.replicas)); // throws before anything is sent
    reload();
}

ORIZURU_INLINE bool ShardedProducerCore::reload() {
    const std::size_t count = ShardRegistry(m_endpoint, m_queue).get().written();
    if (count == m_shards.size()) {
        return false;
    }
    std::vector<Shard> shards(count);
    std::vector<std::string> names = shard_names(m_queue, count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto former = std::ranges::find(m_shards, names[i], &Shard::name);
        if (former != m_shards.end()) {
            shards[i] = std::move(*former);
        } else {
            shards[i].name = std::move(names[i]);
        }
    }
    m_shards = std::move(shards);
    // Many producers begin at the same time.
    m_turn = narrow<std::size_t>(entropy() % count);
    return true;
}

ORIZURU_INLINE std::uint64_t ShardedProducerCore::push(PayloadSource payload) {
    return push_to_any([&](ProducerCore& producer) { return producer.push(payload); });
}

ORIZURU_INLINE std::uint64_t ShardedProducerCore::push_to(std::string_view key,
                                                          PayloadSource payload) {
    const auto push = [&](ProducerCore& producer) { return producer.push(payload); };
    try {
        return push_on(m_shards[index_of(key)], push);
    } catch (const ReplyError& error) {
        if (error.code() != "WRONGTYPE" || !has_other_shards()) {
            throw;
        }
    }
    return push_on(m_shards[index_of(key)], push);
}

ORIZURU_INLINE std::uint64_t ShardedProducerCore::push_all(PayloadSource payloads) {
    std::uint64_t pushed = 0;
    EncodedBatch batch;
    try {
        while (batch.fill(payloads)) {
            push_to_any([&](ProducerCore& producer) {
                std::uint64_t length = 0;
                batch.read([&](PayloadSource all) { length = producer.push_all(all); });
                return length;
            });
            pushed += batch.size();
        }
    } catch (Error& error) {
        PushCount::set(error, pushed + error.pushed());
        throw;
    }
    return pushed;
}

/// One that this push has not tried, which there is; if possible, one that does not rest.
ORIZURU_INLINE ShardedProducerCore::Shard& ShardedProducerCore::next() {
    const TimePoint now = Clock::now();
    Shard* resting = nullptr;
    for (std::size_t tries = 0; tries < m_shards.size(); ++tries) {
        Shard& shard = m_shards[m_turn++ % m_shards.size()];
        if (shard.tried_by == m_push) {
            continue;
        }
        if (shard.rests_until <= now) {
            return shard;
        }
        resting = resting == nullptr ? &shard : resting;
    }
    return *resting;
}

/// After WRONGTYPE. What fails here is no doubt about the message, which was refused.
ORIZURU_INLINE bool ShardedProducerCore::has_other_shards() noexcept {
    try {
        return reload();
    } catch (const std::exception&) {
        return false;
    }
}

ORIZURU_INLINE std::uint64_t ShardedProducerCore::push_on(Shard& shard, Push push) {
    if (!shard.producer) {
        std::string name = shard.name;
        shard.producer.emplace(m_endpoint, std::move(name), m_options);
    }
    return push(*shard.producer);
}

ORIZURU_INLINE std::uint64_t ShardedProducerCore::push_to_any(Push push) {
    ++m_push;
    for (std::size_t tried = 1;; ++tried) {
        Shard& shard = next();
        shard.tried_by = m_push;
        const TimePoint began = Clock::now();
        try {
            return push_on(shard, push);
        } catch (const ConnectionError& error) {
            if (error.in_doubt() || tried == m_shards.size()) {
                throw;
            }
        } catch (const RefusedError&) {
            throw; // the message, not the shard, is at fault
        } catch (const ReplyError& error) {
            if (error.code() == "WRONGTYPE" && has_other_shards()) {
                ++m_push;
                tried = 0;
                continue;
            }
            if (tried == m_shards.size()) {
                throw;
            }
        }
        // So that a server that hangs costs little of the time.
        constexpr int times = 20;
        shard.rests_until =
            Clock::now() +
            std::max<Clock::duration>(std::chrono::seconds(1), times * (Clock::now() - began));
    }
}

} // namespace orizuru::detail
