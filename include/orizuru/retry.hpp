// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// When a job that failed is tried again: how long to wait, when to give up, and the step that puts
// a message off. What puts it back in time is a Scheduler (scheduler.hpp) of that queue.

#include <orizuru/codec.hpp>
#include <orizuru/detail/encoding.hpp>
#include <orizuru/detail/schedule.hpp>
#include <orizuru/error.hpp>
#include <orizuru/job.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/unique.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

/// How long to wait after a try, the first is 1, has failed: 0 to 100 years, to which other times
/// are bounded. A pure function of the try and of a seed: equal ones give equal times. Different
/// seeds spread jobs that failed together.
using RetryDelay = std::function<std::chrono::milliseconds(int attempt, std::uint64_t seed)>;

namespace detail {

// What a delay cannot exceed, so that no formula overflows and every time has four digits of a
// year.
inline constexpr std::chrono::milliseconds longest_retry_delay = std::chrono::hours(24 * 365 * 100);

[[nodiscard]] inline std::chrono::milliseconds bounded_delay(double milliseconds,
                                                             std::chrono::milliseconds longest) {
    const auto most = static_cast<double>(std::min(longest, longest_retry_delay).count());
    if (std::isnan(milliseconds)) {
        return {}; // 0 times infinity
    }
    return std::chrono::milliseconds(
        static_cast<std::int64_t>(std::clamp(milliseconds, 0.0, most)));
}

/// 0 to just under 1, the same for the same: SplitMix64 (Steele, Lea, Flood: Fast splittable
/// pseudorandom number generators, 2014), of which the 53 upper bits are taken.
[[nodiscard]] inline double seeded_fraction(int attempt, std::uint64_t seed) noexcept {
    std::uint64_t bits = seed + static_cast<std::uint64_t>(attempt) * 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
    bits ^= bits >> 31;
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

inline void refuse_negative(std::chrono::milliseconds time) {
    if (time.count() < 0) {
        throw std::invalid_argument("a retry's delay must not be negative");
    }
}

} // namespace detail

/// The usual delays. Their constructors throw std::invalid_argument for a negative time.
namespace retry_delay {

/// Always the same.
[[nodiscard]] inline RetryDelay fixed(std::chrono::milliseconds delay) {
    detail::refuse_negative(delay);
    return [delay](int, std::uint64_t) { return delay; };
}

/// step, 2 step, 3 step …, at most `longest`.
[[nodiscard]] inline RetryDelay
linear(std::chrono::milliseconds step,
       std::chrono::milliseconds longest = detail::longest_retry_delay) {
    detail::refuse_negative(step);
    detail::refuse_negative(longest);
    return [=](int attempt, std::uint64_t) {
        return detail::bounded_delay(static_cast<double>(step.count()) * attempt, longest);
    };
}

/// first, first × factor, first × factor² …, at most `longest`.
[[nodiscard]] inline RetryDelay
exponential(std::chrono::milliseconds first,
            std::chrono::milliseconds longest = detail::longest_retry_delay, double factor = 2) {
    detail::refuse_negative(first);
    detail::refuse_negative(longest);
    if (!(factor >= 1)) {
        throw std::invalid_argument("the factor of an exponential delay must be 1 or more");
    }
    return [=](int attempt, std::uint64_t) {
        return detail::bounded_delay(
            static_cast<double>(first.count()) * std::pow(factor, attempt - 1), longest);
    };
}

/// With n failures before this one: n⁴ + 15 seconds and a random time of up to 10 (n + 1) seconds:
/// the 24 waits of 25 tries take 16 to 17 days. As Sidekiq 8 does.
[[nodiscard]] inline RetryDelay polynomial() {
    return [](int attempt, std::uint64_t seed) {
        const double before = attempt - 1;
        const double seconds = before * before * before * before + 15 +
                               detail::seeded_fraction(attempt, seed) * 10 * (before + 1);
        return detail::bounded_delay(seconds * 1000, detail::longest_retry_delay);
    };
}

/// A random time of up to `delay`: what failed together is spread as wide as can be.
[[nodiscard]] inline RetryDelay full_jitter(RetryDelay delay) {
    return [delay = std::move(delay)](int attempt, std::uint64_t seed) {
        return detail::bounded_delay(static_cast<double>(delay(attempt, seed).count()) *
                                         detail::seeded_fraction(attempt, seed),
                                     detail::longest_retry_delay);
    };
}

/// These, one after the other, then the last one again and again. Throws for an empty list.
[[nodiscard]] inline RetryDelay list(std::vector<std::chrono::milliseconds> delays) {
    if (delays.empty()) {
        throw std::invalid_argument("the list of a retry's delays is empty");
    }
    std::ranges::for_each(delays, detail::refuse_negative);
    return [delays = std::move(delays)](int attempt, std::uint64_t) {
        const auto last = static_cast<std::ptrdiff_t>(delays.size()) - 1;
        return delays[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(attempt - 1, 0, last))];
    };
}

} // namespace retry_delay

/// What becomes of a job that will not be tried again.
enum class Exhausted {
    bury,   ///< to the dead list
    discard ///< it is acked: nobody needs it
};

struct RetryPolicy {
    /// How often a job is tried in all. It is looked at when a try fails; tries that end with the
    /// death of a worker are added then, and bounded by QueueOptions::max_recoveries.
    int max_attempts = 25;
    RetryDelay delay = retry_delay::polynomial();
    /// For how long after it was first enqueued a job is tried again; 0 or less = however long it
    /// takes.
    std::chrono::milliseconds retry_for{};
    /// Where it is tried again; empty = where it came from.
    std::string retry_queue = {};
    Exhausted exhausted = Exhausted::bury;
};

/// How long a job that has failed waits for its next try; none: it was tried often or long enough.
/// Pure, so that it can be tested without a queue. `seed` spreads what failed together: a hash of
/// the job's id, say. Throws what the policy's delay throws.
[[nodiscard]] inline std::optional<std::chrono::milliseconds>
next_try(const RetryPolicy& policy, int attempt, JobTime first_enqueued_at, JobTime now,
         std::uint64_t seed) {
    if (attempt >= policy.max_attempts) {
        return std::nullopt;
    }
    using std::chrono::milliseconds;
    const milliseconds delay =
        std::clamp(policy.delay(attempt, seed), milliseconds(0), detail::longest_retry_delay);
    // Whoever enqueued it may have a clock that is ahead.
    const milliseconds age = std::max(now - first_enqueued_at, milliseconds(0));
    // No sum, which could overflow: retry_for may be the longest time there is.
    if (policy.retry_for.count() > 0 && delay > policy.retry_for - age) {
        return std::nullopt;
    }
    return delay;
}

/// Where and as what a message is scheduled.
template <class T>
struct PutOff {
    /// Empty = the queue that it came from. In a cluster it must lie in the same slot.
    std::string queue = {};
    /// Null = the message as it is. Only read during the call.
    const T* replacement = nullptr;
};

namespace detail {

template <class T>
bool put_off(MessageGuard<T>& guard, std::vector<std::string> arguments, const PutOff<T>& options) {
    if (options.replacement != nullptr) {
        encode(*options.replacement, arguments.emplace_back(), guard.max_payload());
    }
    return guard.settle(schedule_body(),
                        schedule_keys(options.queue.empty() ? guard.keys() : Keys(options.queue)),
                        std::move(arguments));
}

} // namespace detail

/// Settles a message by having it come again after `delay`, by Redis' clock; at once for a delay
/// that is not positive.
/// Redis: ZADD and the removal, in one script: O(log(n)) of the scheduled messages.
/// Atomic: a crash leaves it either where it was or scheduled. Returns, blocks and throws as every
/// settlement (message_guard.hpp); std::invalid_argument for a time beyond the year 9999 or a name
/// that no queue can have, EncodeError for the replacement: then nothing has happened.
template <class T>
bool push_after(MessageGuard<T>& guard, std::chrono::milliseconds delay,
                const PutOff<T>& options = {}) {
    return detail::put_off(guard, detail::due_after(delay), options);
}

/// The same at a time, which Redis' clock decides; at once for one that is past.
template <class T>
bool push_at(MessageGuard<T>& guard, JobTime time, const PutOff<T>& options = {}) {
    return detail::put_off(guard, detail::due_at(time), options);
}

/// What `retry` has done with a job.
enum class RetryOutcome {
    put_off,   ///< it comes again after `delay`
    buried,    ///< it was the last try: it is on the dead list
    discarded, ///< it was the last try: it is acked
    lost       ///< nothing: the lease was lost before, another consumer has it
};

struct Retried {
    RetryOutcome outcome;
    std::chrono::milliseconds delay{};
    std::string reason = {}; ///< of one that was buried: as it is on the dead list
};

namespace detail {

/// The next attempt in bytes; empty when it is too large. Less important than to come again is to
/// say why it failed.
inline std::string next_attempt(Job<Raw> job, std::string_view reason, std::int64_t max_payload) {
    std::string body;
    for (const std::string_view last_error : {reason, std::string_view()}) {
        job.last_error = last_error;
        body.clear();
        try {
            encode(job, body, max_payload);
            return body;
        } catch (const EncodeError&) { // NOLINT(bugprone-empty-catch)
        }
    }
    return {};
}

template <class T>
Retried bury(MessageGuard<Job<T>>& guard, std::string_view reason) {
    std::string cut(cut_text(reason, longest_last_error));
    const bool done = guard.bury(cut);
    return {.outcome = done ? RetryOutcome::buried : RetryOutcome::lost, .reason = std::move(cut)};
}

} // namespace detail

/// Settles a job that has failed: has it come again as the policy says, one attempt on and with
/// `reason` as its last_error, its payload's bytes as they are; or ends it when it was the last
/// try. `crashes` are tries that ended with the death of a consumer, in the count of a collector.
/// When the policy's delay throws, the job is buried with both reasons: nothing says when to try
/// again, and it must not be tried for ever.
///
/// Redis: as push_after, bury or ack. Atomic: one step. Blocks and throws as every settlement
/// (message_guard.hpp); a ReplyError leaves the guard unsettled.
template <class T>
Retried retry(MessageGuard<Job<T>>& guard, const RetryPolicy& policy, std::string_view reason,
              int crashes = 0) {
    Scratch scratch;
    auto next = detail::decode<Job<Raw>>(guard.payload(), scratch);
    const JobTime now = job_time();
    next.attempt += std::min(crashes, std::numeric_limits<int>::max() - 1 - next.attempt);
    std::optional<std::chrono::milliseconds> delay;
    try {
        delay = next_try(policy, next.attempt, next.first_enqueued_at, now,
                         std::hash<std::string>{}(next.id));
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        return detail::bury(guard, std::string(reason) + "; its retry's delay: " + error.what());
    } catch (...) {
        return detail::bury(guard, std::string(reason) + "; its retry's delay threw");
    }
    ++next.attempt;
    next.enqueued_at = now;
    std::string body =
        delay ? detail::next_attempt(std::move(next), reason, guard.max_payload()) : std::string();
    if (!body.empty()) {
        std::vector<std::string> arguments = detail::due_after(*delay);
        arguments.push_back(std::move(body));
        const Keys target = policy.retry_queue.empty() ? guard.keys() : Keys(policy.retry_queue);
        const bool done = guard.settle(detail::schedule_body(), detail::schedule_keys(target),
                                       std::move(arguments));
        return {done ? RetryOutcome::put_off : RetryOutcome::lost, *delay};
    }
    if (policy.exhausted == Exhausted::discard) {
        return {ack_unique(guard) ? RetryOutcome::discarded : RetryOutcome::lost};
    }
    return detail::bury(guard, reason);
}

} // namespace orizuru
