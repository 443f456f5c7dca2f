// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of retry.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/jobs/error_text.hpp>
#include <orizuru/detail/jobs/group/membership.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/detail/redis/scripts/recovery_counts.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>

namespace orizuru::detail {

/// `queue`: empty for the one that the message came from.
inline std::vector<std::string> keys_to_schedule(const GuardCore& guard, const std::string& queue) {
    return schedule_keys(queue.empty() ? guard.keys() : Keys(queue));
}

ORIZURU_INLINE bool put_off(GuardCore& guard, const std::string& queue,
                            std::vector<std::string> due) {
    constexpr std::size_t replaced = 3;
    if (guard.awaited(Delivery::Awaited::by_key) && !queue.empty() &&
        queue != guard.keys().source()) {
        refuse_awaited(Delivery::Awaited::by_key);
    }
    if (guard.awaited(Delivery::Awaited::by_group) && due.size() == replaced &&
        due.back().find(group_prefix) == std::string::npos) {
        refuse_awaited(Delivery::Awaited::by_group);
    }
    return guard.settle(
        guard.putting_off(schedule_body(), keys_to_schedule(guard, queue), std::move(due)));
}

/// The next attempt in bytes, without the reason when that makes it too large; empty when it still
/// is too large.
inline std::string next_attempt(Job<Raw> job, std::string_view reason, std::int64_t max_payload) {
    for (const std::string_view last_error : {reason, std::string_view()}) {
        job.last_error = last_error;
        try {
            return encoded(job, max_payload);
        } catch (const EncodeError&) { // NOLINT(bugprone-empty-catch)
        }
    }
    return {};
}

/// The reason is cut so that all of `note` fits behind it.
inline RetryPlan plan_burial(const GuardCore& guard, const OrderedJob& job, std::string_view reason,
                             std::string_view note = {}) {
    note = cut_text(note, longest_last_error / 2);
    std::string cut(cut_text(reason, longest_last_error - note.size()));
    cut += note;
    return {.settlement = has_turn(job, guard.keys()) ? burying_in_order(guard, job, cut)
                                                      : guard.burying(cut),
            .retried = {.outcome = RetryOutcome::buried, .reason = std::move(cut)}};
}

/// Asks the policy, and changes it to what is decided for this one failure.
inline RetryDecision::Action decide(RetryPolicy& policy, const FailedTry& failed,
                                    const Job<Raw>& job) {
    if (failed.action != RetryDecision::Action::by_policy || failed.last || !failed.error ||
        !policy.decide) {
        return failed.action;
    }
    const JobAttributes& left = failed.attributes != nullptr ? *failed.attributes : job.attributes;
    const RetryDecision decision =
        policy.decide(failed.error, FailedJob{job.id, job.kind, job.attempt, left});
    if (decision.action == RetryDecision::Action::retry) {
        policy.backoff = [delay = decision.delay](int, std::uint64_t) { return delay; };
        return RetryDecision::Action::by_policy;
    }
    return decision.action;
}

ORIZURU_INLINE ThrownFailure failure_of(const std::exception_ptr& error) {
    if (!error) {
        throw std::invalid_argument("retry needs an exception");
    }
    ThrownFailure failure;
    try {
        std::rethrow_exception(error);
    } catch (const DoNotRetry& thrown) {
        failure.reason = text_or_less(thrown.what());
        failure.last = true;
    } catch (const Discard& thrown) {
        failure.reason = text_or_less(thrown.what());
        failure.action = RetryDecision::Action::discard;
    } catch (...) {
        tell_thrown([&](std::string_view what) { failure.reason = text_or_less(what); });
    }
    return failure;
}

ORIZURU_INLINE RetryChoice choose_retry(Job<Raw>& job, RetryPolicy policy,
                                        const FailedTry& failed) {
    const JobTime now = failed.now.value_or(job_time());
    job.attempt += std::min(failed.crashes, std::numeric_limits<int>::max() - 1 - job.attempt);
    job.first_failed_at = job.first_failed_at.value_or(now);
    policy.max_attempts = failed.last ? 1 : job.max_attempts.value_or(policy.max_attempts);
    auto action = RetryDecision::Action::by_policy;
    std::optional<std::chrono::milliseconds> delay;
    std::string_view asked = "decide";
    try {
        action = decide(policy, failed, job);
        asked = "backoff";
        if (action == RetryDecision::Action::by_policy) {
            delay = next_try(policy, job.attempt, *job.first_failed_at, now,
                             std::hash<std::string>{}(job.id));
        }
    } catch (const std::bad_alloc&) {
        throw;
    } catch (...) {
        return tell_thrown([&](std::string_view what) {
            return RetryChoice{.outcome = RetryOutcome::buried,
                               .note = joined({"; its ", asked, ": ", what})};
        });
    }
    ++job.attempt;
    job.enqueued_at = later(now, delay.value_or(std::chrono::milliseconds(0)));
    if (delay) {
        return {.outcome = RetryOutcome::put_off, .delay = *delay};
    }
    const bool exhausted = action == RetryDecision::Action::by_policy;
    const bool discards = action == RetryDecision::Action::discard ||
                          (exhausted && policy.exhausted == Exhausted::discard);
    return {.outcome = discards ? RetryOutcome::discarded : RetryOutcome::buried};
}

/// The next try of a job, in `queue`, the policy's.
inline RetryPlan plan_next_try(const GuardCore& guard, Job<Raw> next, const std::string& queue,
                               std::chrono::milliseconds delay, const FailedTry& failed) {
    if (!next.unique_id.empty() && !queue.empty() && next.unique_queue.empty()) {
        next.unique_queue = guard.keys().source();
    }
    if (failed.attributes != nullptr) {
        next.attributes = *failed.attributes;
    }
    const std::string key = next.key;
    const std::string ticket = next.ticket;
    const OrderedJob ordered{key, ticket};
    const bool leaves =
        has_turn(ordered, guard.keys()) && !queue.empty() && queue != guard.keys().source();
    if (leaves) {
        next.ticket.clear();
    }
    const std::string counted = recovery_field(next.id);
    std::string body = next_attempt(std::move(next), failed.reason, guard.max_payload());
    if (body.empty()) {
        return plan_burial(guard, ordered, failed.reason, "; too large to be tried again");
    }
    std::vector<std::string> due = due_after(delay);
    due.push_back(std::move(body));
    const Retried retried{.outcome = RetryOutcome::put_off, .delay = delay};
    if (leaves) {
        return {leaving_order(guard, ordered, Keys(queue), std::move(due)), retried};
    }
    std::vector<std::string> keys = keys_to_schedule(guard, queue);
    if (guard.burst() != nullptr && has_turn(ordered, guard.keys())) {
        return {deferring_in_burst(guard, ordered, keys, std::move(due)), retried};
    }
    if (failed.crashes > 0 && failed.recoveries > 0) {
        keys.push_back(guard.keys().recoveries());
        due.push_back(counted);
        due.push_back(std::to_string(failed.recoveries));
    }
    return {.settlement = guard.putting_off(schedule_body(), std::move(keys), std::move(due)),
            .retried = retried};
}

ORIZURU_INLINE RetryPlan plan_retry(const GuardCore& guard, RetryPolicy policy,
                                    const FailedTry& failed) {
    Scratch scratch;
    auto job = decode<Job<Raw>>(guard.payload(), scratch);
    const std::string queue = policy.retry_queue;
    const RetryChoice choice = choose_retry(job, std::move(policy), failed);
    if (choice.outcome == RetryOutcome::put_off) {
        return plan_next_try(guard, std::move(job), queue, choice.delay, failed);
    }
    if (choice.outcome == RetryOutcome::buried) {
        RetryPlan plan = plan_burial(guard, {job.key, job.ticket}, failed.reason, choice.note);
        const bool own_lock = !job.unique_id.empty() && (job.unique_queue.empty() ||
                                                         job.unique_queue == guard.keys().source());
        if (failed.cancelled && own_lock) {
            plan.settlement = burying_unlocked(guard, {job.id, job.unique_id, job.unique_queue},
                                               plan.retried.reason);
        }
        return plan;
    }
    return {.settlement = acking_job(guard, {job.id, job.unique_id, job.unique_queue},
                                     {job.key, job.ticket}, job.group),
            .retried = {.outcome = RetryOutcome::discarded}};
}

ORIZURU_INLINE Retried retry(GuardCore& guard, RetryPolicy policy, const FailedTry& failed) {
    RetryPlan plan = plan_retry(guard, std::move(policy), failed);
    return retried(std::move(plan.retried), guard.settle(std::move(plan.settlement)));
}

ORIZURU_INLINE Retried retried(Retried planned, bool done) {
    return done ? std::move(planned) : Retried{.outcome = RetryOutcome::lost};
}

} // namespace orizuru::detail
