// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Chooses the shard for each push, and another one if that refuses.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/producer/payload_source.hpp>
#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/shards/shard_names.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/producer_options.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

/// For one thread at a time. Blocks and throws as ShardedProducer documents.
class ShardedProducerCore {
  public:
    [[gnu::cold]] ShardedProducerCore(Endpoint endpoint, std::string&& queue,
                                      ProducerOptions options);

    /// To the next shard in turn. The payload may be asked for again.
    std::uint64_t push(PayloadSource payload);
    std::uint64_t push_to(std::string_view key, PayloadSource payload);
    /// Whole LPUSHes to the shards in turn.
    std::uint64_t push_all(PayloadSource payloads);

    /// Returns whether the shards are others than before.
    [[gnu::cold]] bool reload();
    [[nodiscard]] const std::string& shard_of(std::string_view key) const noexcept {
        return m_shards[index_of(key)].name;
    }
    [[nodiscard]] const ProducerOptions& options() const noexcept { return m_options; }

  private:
    using Push = FunctionRef<std::uint64_t(ProducerCore&)>;

    struct Shard {
        std::string name;
        std::optional<ProducerCore> producer; ///< made when the shard is first needed
        TimePoint rests_until{};              ///< after a failure, while others are well
        std::uint64_t tried_by = 0;           ///< the last push that has tried it
    };

    [[nodiscard]] Shard& next();
    [[gnu::cold]] bool has_other_shards() noexcept;
    [[nodiscard]] std::size_t index_of(std::string_view key) const noexcept {
        return shard_of_slot(cluster_slot(key), m_shards.size());
    }
    std::uint64_t push_on(Shard& shard, Push push);
    std::uint64_t push_to_any(Push push);

    Endpoint m_endpoint;
    std::string m_queue;
    ProducerOptions m_options;
    std::vector<Shard> m_shards;
    std::size_t m_turn = 0;
    std::uint64_t m_push = 0; ///< its number
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/shards/sharded_producer_core.ipp>
#endif
