// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of rate_limit.hpp.

#include <orizuru/detail/limits/rate_script.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/reply.hpp>

#include <stdexcept>
#include <utility>

namespace orizuru {

ORIZURU_INLINE RateLimit::RateLimit(Endpoint endpoint, std::string name, const Rate& rate)
    : m_keys(std::move(name)),
      m_spacing(detail::RateSpacing::of(rate)),
      m_connection(std::make_unique<Connection>(
          detail::Route::to_key(std::move(endpoint), m_keys.source()))) {}

ORIZURU_INLINE std::chrono::milliseconds RateLimit::take(std::string_view key) {
    if (key.size() > 512) {
        throw std::invalid_argument("the key of a rate limit has more than 512 bytes");
    }
    const std::string name = m_keys.rate(key);
    const std::lock_guard lock(m_mutex);
    const Reply reply =
        detail::run_script(*m_connection, name, detail::take_permit_script, 1, name,
                           m_spacing.apart.count(), m_spacing.late.count(), m_spacing.per.count());
    if (!detail::is_count(reply)) {
        detail::refuse(*m_connection, "EVALSHA");
    }
    return std::chrono::milliseconds(reply.integer);
}

} // namespace orizuru
