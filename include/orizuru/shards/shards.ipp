// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of shards.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/shards/shard_registry.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>

namespace orizuru {

namespace detail {

[[noreturn]] [[gnu::cold]] inline void refuse_count(const std::string& queue, std::size_t has,
                                                    std::size_t wanted) {
    throw std::logic_error(
        joined({"queue '", queue, "' has ", Digits(has), " shards, not ", Digits(wanted)}));
}

} // namespace detail

ORIZURU_INLINE void create_shards(const Endpoint& endpoint, const std::string& queue,
                                  std::size_t count) {
    detail::ShardRegistry::validate(count);
    detail::ShardRegistry registry(endpoint, queue);
    const auto written = [&] {
        if (!registry.find()) {
            // Later than all changes before, if the number was deleted.
            const auto now = std::chrono::system_clock::now().time_since_epoch();
            const auto change = std::chrono::floor<std::chrono::milliseconds>(now).count();
            detail::ShardLayout first(count, static_cast<std::uint64_t>(change));
            if (registry.replace({}, first.text())) {
                return first;
            }
        }
        if (const std::size_t has = registry.get().written(); has != count) {
            detail::refuse_count(queue, has, count);
        }
        return registry.change([&](const detail::ShardLayout& layout) {
            if (layout.written() != count) {
                detail::refuse_count(queue, layout.written(), count);
            }
        });
    };
    registry.open(detail::shard_names(queue, count), written());
}

ORIZURU_INLINE std::vector<std::string> shards(const Endpoint& endpoint, const std::string& queue) {
    return detail::ShardRegistry(endpoint, queue).get().names(queue);
}

ORIZURU_INLINE void add_shards(const Endpoint& endpoint, const std::string& queue,
                               std::size_t count) {
    detail::ShardRegistry::validate(count);
    detail::ShardRegistry registry(endpoint, queue);
    const auto layout = registry.change([&](detail::ShardLayout& next) { next.read(count); });
    registry.open(detail::shard_names(queue, count), layout);
}

ORIZURU_INLINE void use_shards(const Endpoint& endpoint, const std::string& queue,
                               std::size_t count) {
    detail::ShardRegistry::validate(count);
    detail::ShardRegistry registry(endpoint, queue);
    const auto require_read = [&](const detail::ShardLayout& layout) {
        if (!layout.reads(count)) {
            throw std::logic_error(
                detail::joined({"queue '", queue, "': its consumers do not read ",
                                detail::Digits(count), " shards; add_shards makes them"}));
        }
    };
    require_read(registry.get());
    // A retirement that has failed may have left some closed: no producer shall meet those.
    const auto layout = registry.change(require_read);
    registry.open(detail::shard_names(queue, count), layout);
    registry.change([&](detail::ShardLayout& next) {
        require_read(next);
        next.write(count);
    });
}

ORIZURU_INLINE std::vector<std::string> retire_shards(const Endpoint& endpoint,
                                                      const std::string& queue) {
    detail::ShardRegistry registry(endpoint, queue);
    std::vector<std::string> closed; // also by tries that another change has overtaken
    std::vector<std::string> leaving;
    try {
        const auto layout = registry.change([&](detail::ShardLayout& next) {
            leaving = next.names(queue);
            next.read_written();
            for (const std::string& name : next.names(queue)) {
                std::erase(leaving, name);
            }
            closed.insert(closed.end(), leaving.begin(), leaving.end());
            registry.close(leaving, next);
        });
        registry.open(closed, layout);
    } catch (const Error&) {
        if (!closed.empty()) {
            registry.open(closed, registry.change([](const detail::ShardLayout&) {}));
        }
        throw;
    }
    return leaving;
}

} // namespace orizuru
