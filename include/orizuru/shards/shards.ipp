// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of shards.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/shards/shard_registry.hpp>

#include <stdexcept>

namespace orizuru {

ORIZURU_INLINE void create_shards(const Endpoint& endpoint, const std::string& queue,
                                  std::size_t count) {
    detail::ShardRegistry::check(count);
    detail::ShardRegistry registry(endpoint, queue);
    const detail::ShardLayout wanted(count);
    auto layout = registry.find();
    if (!layout && !registry.replace({}, wanted.text())) {
        layout = registry.find(); // another one was faster
    }
    if (layout && layout->written() != count) {
        throw std::logic_error(
            detail::joined({"queue '", queue, "' has ", detail::Digits(layout->written()),
                            " shards, not ", detail::Digits(count)}));
    }
    registry.open(wanted.names(queue));
}

ORIZURU_INLINE std::vector<std::string> shards(const Endpoint& endpoint, const std::string& queue) {
    return detail::ShardRegistry(endpoint, queue).get().names(queue);
}

ORIZURU_INLINE void add_shards(const Endpoint& endpoint, const std::string& queue,
                               std::size_t count) {
    detail::ShardRegistry::check(count);
    detail::ShardRegistry registry(endpoint, queue);
    registry.change([&](detail::ShardLayout& layout) {
        if (!layout.reads(count)) {
            layout.read(count);
        }
    });
    // Only now: one who pushes to a shard that nobody reads shall be refused.
    registry.open(detail::shard_names(queue, count));
}

ORIZURU_INLINE void use_shards(const Endpoint& endpoint, const std::string& queue,
                               std::size_t count) {
    detail::ShardRegistry::check(count);
    detail::ShardRegistry registry(endpoint, queue);
    registry.change([&](detail::ShardLayout& layout) {
        if (!layout.reads(count)) {
            throw std::logic_error(
                detail::joined({"queue '", queue, "': its consumers do not read ",
                                detail::Digits(count), " shards; add_shards makes them"}));
        }
        registry.open(detail::shard_names(queue, count));
        layout.write(count);
    });
}

ORIZURU_INLINE std::vector<std::string> retire_shards(const Endpoint& endpoint,
                                                      const std::string& queue) {
    detail::ShardRegistry registry(endpoint, queue);
    std::vector<std::string> leaving;
    try {
        registry.change([&](detail::ShardLayout& layout) {
            leaving = layout.names(queue);
            layout = detail::ShardLayout(layout.written());
            for (const std::string& name : layout.names(queue)) {
                std::erase(leaving, name);
            }
            registry.close(leaving);
        });
    } catch (...) {
        registry.reopen(leaving);
        throw;
    }
    registry.reopen(leaving);
    return leaving;
}

} // namespace orizuru
