// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The limits of the protocol that consumers and collectors share.

#include <algorithm>
#include <chrono>

namespace orizuru::detail {

/// Lifetime of a fence that late requests may meet: longer than any paused process or half-open
/// connection lasts.
inline constexpr std::chrono::milliseconds fence_time = std::chrono::hours(24 * 7);
/// Lifetime of a fence that no late request can meet: longer than it takes to ask again for a lost
/// reply to the request that has left it.
inline constexpr std::chrono::milliseconds short_fence_time = std::chrono::minutes(10);

inline constexpr std::chrono::milliseconds longest_attempts_apart{1000};
/// The longest pause between the attempts of a consumer to be heard again: collectors take it for
/// dead half a lease after Redis takes writes again.
[[nodiscard]] inline std::chrono::milliseconds attempts_apart(std::chrono::milliseconds lease) {
    return std::min<std::chrono::milliseconds>(lease / 12, longest_attempts_apart);
}

/// Suspects for which no consumer has asked for this long, and for the lease of the last one that
/// did, go back to the source: the consumers that are left may not know of them.
inline constexpr std::chrono::milliseconds suspects_patience = std::chrono::minutes(10);

/// The most messages that one fetch or one step of a collector moves: Lua's unpack has a limit.
inline constexpr int largest_batch = 1000;

} // namespace orizuru::detail
