// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of rate_limit.hpp.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/limits/rate_script.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace orizuru {

namespace detail {

[[nodiscard]] inline std::chrono::microseconds lateness_of(const Rate& rate) {
    return std::min<std::chrono::microseconds>(rate.per / 20, std::chrono::milliseconds(50));
}

/// A permit is taken between the time at which it is due and `late` behind. Those taken in a span
/// of `per` are therefore due in one of `per` + `late`, which must not have room for one more.
[[nodiscard]] inline std::chrono::microseconds spacing_of(const Rate& rate) {
    check_count("the permits of a rate", rate.most, 1'000'000);
    check_time("the span of a rate", rate.per, std::chrono::milliseconds(1));
    const std::chrono::microseconds span = rate.per + lateness_of(rate);
    return (span + std::chrono::microseconds(rate.most - 1)) / rate.most;
}

} // namespace detail

ORIZURU_INLINE RateLimit::RateLimit(Endpoint endpoint, std::string name, const Rate& rate)
    : m_keys(std::move(name)),
      m_apart(detail::spacing_of(rate)),
      m_late(detail::lateness_of(rate)),
      m_per(rate.per),
      m_connection(std::make_unique<Connection>(
          detail::Route::to_key(std::move(endpoint), m_keys.source()))) {}

ORIZURU_INLINE std::chrono::milliseconds RateLimit::take(std::string_view key) {
    if (key.size() > 512) {
        throw std::invalid_argument("the key of a rate limit has more than 512 bytes");
    }
    const std::string name = m_keys.rate(key);
    const std::lock_guard lock(m_mutex);
    const Reply reply = detail::run_script(*m_connection, name, detail::take_permit_script, 1, name,
                                           m_apart.count(), m_late.count(), m_per.count());
    if (!detail::is_count(reply)) {
        detail::refuse(*m_connection, "EVALSHA");
    }
    return std::chrono::milliseconds(reply.integer);
}

} // namespace orizuru
