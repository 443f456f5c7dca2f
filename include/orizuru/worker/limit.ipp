// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the function of limit.hpp that is no template.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/limits/rate_spacing.hpp>
#include <orizuru/detail/worker/limits/fleet_limiter.hpp>
#include <orizuru/detail/worker/worker_core.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

namespace orizuru {

namespace detail {

/// Throws std::invalid_argument for a limit that cannot be.
inline void check_limit(const FleetLimit& limit, const std::string& about) {
    if (!limit.concurrency && !limit.rate) {
        throw std::invalid_argument(about + "a limit without concurrency and rate");
    }
    try {
        if (limit.concurrency) {
            check_count("the concurrency of a limit", *limit.concurrency, 100'000);
        }
        if (limit.rate) {
            static_cast<void>(RateSpacing::of(*limit.rate));
        }
    } catch (const std::invalid_argument& refusal) {
        throw std::invalid_argument(about + refusal.what());
    }
}

/// Does the same for a queue that cannot keep to it.
inline void check_limited(const FetchingQueue& queue, const FleetLimit& limit) {
    if (queue.options().prefetch > 1) {
        throw std::invalid_argument("queue '" + queue.queue() +
                                    "': with a limit, prefetch must be 1: what is fetched ahead "
                                    "would not wait in Redis");
    }
    if (limit.rate && queue.in_batches()) {
        throw std::invalid_argument("queue '" + queue.queue() + "': batches take no rate");
    }
    if (limit.rate && queue.burst() > 1) {
        throw std::invalid_argument("queue '" + queue.queue() + "': bursts take no rate");
    }
}

} // namespace detail

ORIZURU_INLINE void Worker::set_limit(const std::string& name, const FleetLimit& limit) {
    const std::string queue = checked(name).source();
    detail::check_limit(limit, "queue '" + queue + "': ");
    const auto limited = std::ranges::find_if(
        m_core->queues, [&](const auto& other) { return other->queue() == queue; });
    if (limited == m_core->queues.end()) {
        throw std::invalid_argument("queue '" + queue + "' has no handler that could be limited");
    }
    detail::check_limited(**limited, limit);
    (*limited)->set_limit([limit](detail::FetchingQueue& of, const Endpoint& endpoint,
                                  std::shared_ptr<const detail::Wake> news) {
        detail::check_limited(of, limit); // its options may have come later
        return std::make_unique<detail::FleetLimiter>(of, endpoint, std::move(news), limit);
    });
}

} // namespace orizuru
