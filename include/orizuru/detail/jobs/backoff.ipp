// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of backoff.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace orizuru {

namespace detail {

ORIZURU_INLINE std::chrono::milliseconds bounded_backoff(double milliseconds,
                                                         std::chrono::milliseconds longest) {
    const auto most = static_cast<double>(std::min(longest, longest_backoff).count());
    if (std::isnan(milliseconds)) {
        return {}; // 0 times infinity
    }
    return std::chrono::milliseconds(
        static_cast<std::int64_t>(std::clamp(milliseconds, 0.0, most)));
}

/// 0 to just under 1, the same for the same: SplitMix64 (Steele, Lea, Flood: Fast splittable
/// pseudorandom number generators, 2014), of which the 53 upper bits are taken.
ORIZURU_INLINE double seeded_fraction(int attempt, std::uint64_t seed) noexcept {
    std::uint64_t bits = seed + static_cast<std::uint64_t>(attempt) * 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
    bits ^= bits >> 31;
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

ORIZURU_INLINE void refuse_negative(std::chrono::milliseconds time) {
    if (time.count() < 0) {
        throw std::invalid_argument("a backoff must not be negative");
    }
}

} // namespace detail

namespace backoff {

ORIZURU_INLINE Backoff fixed(std::chrono::milliseconds delay) {
    detail::refuse_negative(delay);
    return [delay](int, std::uint64_t) { return delay; };
}

ORIZURU_INLINE Backoff linear(std::chrono::milliseconds step, std::chrono::milliseconds longest) {
    detail::refuse_negative(step);
    detail::refuse_negative(longest);
    return [=](int attempt, std::uint64_t) {
        return detail::bounded_backoff(static_cast<double>(step.count()) * attempt, longest);
    };
}

ORIZURU_INLINE Backoff exponential(std::chrono::milliseconds first,
                                   std::chrono::milliseconds longest, double factor) {
    detail::refuse_negative(first);
    detail::refuse_negative(longest);
    if (!(factor >= 1)) {
        throw std::invalid_argument("the factor of an exponential backoff must be 1 or more");
    }
    return [=](int attempt, std::uint64_t) {
        return detail::bounded_backoff(
            static_cast<double>(first.count()) * std::pow(factor, attempt - 1), longest);
    };
}

ORIZURU_INLINE Backoff polynomial() {
    return [](int attempt, std::uint64_t seed) {
        const double before = attempt - 1;
        const double seconds = before * before * before * before + 15 +
                               detail::seeded_fraction(attempt, seed) * 10 * (before + 1);
        return detail::bounded_backoff(seconds * 1000, detail::longest_backoff);
    };
}

ORIZURU_INLINE Backoff full_jitter(Backoff delay) {
    return [delay = std::move(delay)](int attempt, std::uint64_t seed) {
        return detail::bounded_backoff(static_cast<double>(delay(attempt, seed).count()) *
                                           detail::seeded_fraction(attempt, seed),
                                       detail::longest_backoff);
    };
}

ORIZURU_INLINE Backoff list(std::vector<std::chrono::milliseconds> delays) {
    if (delays.empty()) {
        throw std::invalid_argument("the list of a backoff is empty");
    }
    std::ranges::for_each(delays, detail::refuse_negative);
    return [delays = std::move(delays)](int attempt, std::uint64_t) {
        const auto last = static_cast<std::ptrdiff_t>(delays.size()) - 1;
        return delays[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(attempt - 1, 0, last))];
    };
}

} // namespace backoff

} // namespace orizuru
