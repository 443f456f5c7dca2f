// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of retry_policy.hpp.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace orizuru {

ORIZURU_INLINE std::optional<std::chrono::milliseconds> next_try(const RetryPolicy& policy,
                                                                 int attempt,
                                                                 JobTime first_failed_at,
                                                                 JobTime now, std::uint64_t seed) {
    if (attempt >= policy.max_attempts) {
        return std::nullopt;
    }
    using std::chrono::milliseconds;
    const milliseconds delay =
        std::clamp(policy.backoff(attempt, seed), milliseconds(0), detail::longest_backoff);
    // The first failing host's clock may run fast.
    const milliseconds age = std::max(now - first_failed_at, milliseconds(0));
    // No sum, which could overflow: retry_for may be the longest time there is.
    if (policy.retry_for.count() > 0 && delay > policy.retry_for - age) {
        return std::nullopt;
    }
    return delay;
}

} // namespace orizuru
