// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of retry.hpp.

#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/base/utf8.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

ORIZURU_INLINE bool put_off(GuardCore& guard, const std::string& queue,
                            std::vector<std::string> due) {
    return guard.settle(schedule_body(), schedule_keys(queue.empty() ? guard.keys() : Keys(queue)),
                        std::move(due));
}

/// The next attempt in bytes, without the reason when that makes it too large; empty when it still
/// is too large.
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

/// The reason is cut so that all of `note` fits behind it.
inline Retried bury(GuardCore& guard, std::string_view reason, std::string_view note = {}) {
    note = cut_text(note, longest_last_error / 2);
    std::string cut(cut_text(reason, longest_last_error - note.size()));
    cut += note;
    const bool done = guard.bury(cut);
    return {.outcome = done ? RetryOutcome::buried : RetryOutcome::lost, .reason = std::move(cut)};
}

ORIZURU_INLINE Retried retry(GuardCore& guard, const RetryPolicy& policy, std::string_view reason,
                             int crashes) {
    Scratch scratch;
    auto next = decode<Job<Raw>>(guard.payload(), scratch);
    const JobTime now = job_time();
    next.attempt += std::min(crashes, std::numeric_limits<int>::max() - 1 - next.attempt);
    next.first_failed_at = next.first_failed_at.value_or(now);
    std::optional<std::chrono::milliseconds> delay;
    try {
        delay = next_try(policy, next.attempt, *next.first_failed_at, now,
                         std::hash<std::string>{}(next.id));
    } catch (const std::bad_alloc&) {
        throw;
    } catch (...) {
        return tell_thrown([&](std::string_view what) {
            return bury(guard, reason, "; its backoff: " + std::string(what));
        });
    }
    ++next.attempt;
    next.enqueued_at = now;
    if (!next.unique_id.empty() && !policy.retry_queue.empty() && next.unique_queue.empty()) {
        next.unique_queue = guard.keys().source();
    }
    if (delay) {
        std::string body = next_attempt(std::move(next), reason, guard.max_payload());
        if (body.empty()) {
            return bury(guard, reason, "; too large to be tried again");
        }
        std::vector<std::string> due = due_after(*delay);
        due.push_back(std::move(body));
        const bool done = put_off(guard, policy.retry_queue, std::move(due));
        return {done ? RetryOutcome::put_off : RetryOutcome::lost, *delay};
    }
    if (policy.exhausted == Exhausted::discard) {
        const bool done = ack_unique(guard, {next.id, next.unique_id, next.unique_queue});
        return {done ? RetryOutcome::discarded : RetryOutcome::lost};
    }
    return bury(guard, reason);
}

} // namespace orizuru::detail
