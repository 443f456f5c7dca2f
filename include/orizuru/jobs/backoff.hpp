// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The usual functions of a RetryPolicy (retry.hpp) for the time that a failed job waits for its
// next try.

#include <orizuru/detail/base/config.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace orizuru {

/// Returns the time to wait after a failed try, counted from 1: 0 to 100 years, to which other
/// times are bounded. A pure function of the try and of a seed. Different seeds spread jobs that
/// failed together.
using Backoff = std::function<std::chrono::milliseconds(int attempt, std::uint64_t seed)>;

namespace detail {

// The bound of all delays, so that no formula overflows and every year has four digits.
inline constexpr std::chrono::milliseconds longest_backoff = std::chrono::hours(24 * 365 * 100);

} // namespace detail

/// The usual delays. Their constructors throw std::invalid_argument for a negative time.
namespace backoff {

/// Always the same.
[[nodiscard]] Backoff fixed(std::chrono::milliseconds delay);

/// step, 2 step, 3 step …, at most `longest`.
[[nodiscard]] Backoff linear(std::chrono::milliseconds step,
                             std::chrono::milliseconds longest = detail::longest_backoff);

/// first, first × factor, first × factor² …, at most `longest`.
[[nodiscard]] Backoff exponential(std::chrono::milliseconds first,
                                  std::chrono::milliseconds longest = detail::longest_backoff,
                                  double factor = 2);

/// After n failures before this one: n⁴ + 15 seconds and a random time of up to 10 (n + 1) seconds.
/// The 24 waits of 25 tries take 16 to 17 days. As Sidekiq 8 does.
[[nodiscard]] Backoff polynomial();

/// A random time of up to `delay`: spreads jobs that failed together as wide as possible.
[[nodiscard]] Backoff full_jitter(Backoff delay);

/// These, one after the other, then the last one again and again. Throws for an empty list.
[[nodiscard]] Backoff list(std::vector<std::chrono::milliseconds> delays);

} // namespace backoff

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/jobs/backoff.ipp>
#endif
