// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Settles a job that failed, by a policy (retry_policy.hpp), and puts messages off. A Scheduler
// (scheduler.hpp) of the queue puts them back in time.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/guard_access.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/message_guard.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

/// The queue and the message of a push_after or push_at.
template <class T>
struct PutOff {
    /// Empty = the queue that it came from. In a cluster it must lie in the same slot.
    std::string queue = {};
    /// Null = the message as it is. Only read during the call.
    const T* replacement = nullptr;
};

namespace detail {

/// `due` as due_at and due_after give it, then the bytes that replace the message, if any.
bool put_off(GuardCore& guard, const std::string& queue, std::vector<std::string> due);

template <class T>
bool put_off(MessageGuard<T>& guard, const PutOff<T>& options, std::vector<std::string> due) {
    if (options.replacement != nullptr) {
        encode(*options.replacement, due.emplace_back(), guard.max_payload());
    }
    return put_off(GuardAccess::core(guard), options.queue, std::move(due));
}

} // namespace detail

/// Settles a message by scheduling it again after `delay`, by Redis' clock; at once for a delay
/// that is not positive. Redis: ZADD and the removal, in one script: O(log(n)) of the scheduled
/// messages. Atomic: a crash leaves it either where it was or scheduled. Returns, blocks and throws
/// as every settlement (message_guard.hpp); std::invalid_argument for a time beyond the year 9999
/// or a name that no queue can have, EncodeError for the replacement: then nothing has happened.
template <class T>
bool push_after(MessageGuard<T>& guard, std::chrono::milliseconds delay,
                const PutOff<T>& options = {}) {
    return detail::put_off(guard, options, detail::due_after(delay));
}

/// Does the same at a time, by Redis' clock; at once for one that is past.
template <class T>
bool push_at(MessageGuard<T>& guard, JobTime time, const PutOff<T>& options = {}) {
    return detail::put_off(guard, options, detail::due_at(time));
}

/// Outcome of `retry` for a job.
enum class RetryOutcome {
    put_off,   ///< it comes again after `delay`
    buried,    ///< it is on the dead list: it was the last try, or so it was decided
    discarded, ///< it is acked: it was the last try, or so it was decided
    lost       ///< no change: the lease was lost before, another consumer has it
};

/// The result of `retry`.
struct Retried {
    RetryOutcome outcome;              ///< says which of the following is set
    std::chrono::milliseconds delay{}; ///< set if it was put off: time until it is due
    std::string reason = {};           ///< set if it was buried: as it is on the dead list
};

namespace detail {

/// Facts about a try that has failed.
struct FailedTry {
    std::string_view reason;
    std::exception_ptr error = {}; ///< null: no decision is asked for
    RetryDecision::Action action = RetryDecision::Action::by_policy;
    bool last = false;      ///< whatever the policy says
    bool cancelled = false; ///< its burial gives up a unique job's lock, if that is its queue's
    int crashes = 0;
    std::uint64_t recoveries = 0; ///< the job's in all; `crashes` are those not yet charged
    const JobAttributes* attributes = nullptr; ///< the next try's; null: as they are
    std::optional<JobTime> now = {};           ///< empty: by the host's clock
};

/// The exception's text, and what its type asks for.
struct ThrownFailure {
    std::string reason;
    RetryDecision::Action action = RetryDecision::Action::by_policy;
    bool last = false;
};
[[nodiscard]] ThrownFailure failure_of(const std::exception_ptr& error);

/// The decision about a job that has failed.
struct RetryChoice {
    RetryOutcome outcome; ///< never lost
    std::chrono::milliseconds delay{};
    std::string note = {}; ///< to be written behind the reason of a burial
};
/// Asks the policy. `job` is the one that failed, and becomes its next try. No settlement is needed
/// for it: a test of a handler asks it, too.
[[nodiscard]] RetryChoice choose_retry(Job<Raw>& job, RetryPolicy policy, const FailedTry& failed);

/// The fate of a job that has failed.
struct RetryPlan {
    Settlement settlement;
    Retried retried; ///< if that is done
};
/// Asks the policy.
[[nodiscard]] RetryPlan plan_retry(const GuardCore& guard, RetryPolicy policy,
                                   const FailedTry& failed);
/// Returns what has become of it.
[[nodiscard]] Retried retried(Retried planned, bool done);

/// orizuru::retry, which follows, for a job of any type.
Retried retry(GuardCore& guard, RetryPolicy policy, const FailedTry& failed);

} // namespace detail

/// Settles a job that has failed. Schedules the next attempt as the policy says, with `reason` as
/// its last_error and the payload's bytes as they are; after the last try buries or acks it.
/// `crashes` are tries that ended with the death of a consumer, as a collector counts them. When
/// the policy's backoff throws, the job is buried with both reasons: without a time it cannot be
/// tried again. Without an exception the policy's `decide` is not asked. A job whose next attempt
/// is over max_payload is buried, too.
///
/// Redis: as push_after, bury or ack. Atomic: one step. Blocks and throws as every settlement
/// (message_guard.hpp); a ReplyError leaves the guard unsettled.
template <class T>
Retried retry(MessageGuard<Job<T>>& guard, const RetryPolicy& policy, std::string_view reason,
              int crashes = 0) {
    return detail::retry(detail::GuardAccess::core(guard), policy,
                         {.reason = reason, .crashes = crashes});
}

/// Does the same for an exception, as in
/// `catch (...) { retry(job, policy, std::current_exception()); }`: its what() is the reason, the
/// policy's `decide` is asked, DoNotRetry and Discard have their meaning. Throws
/// std::invalid_argument for none.
template <class T>
Retried retry(MessageGuard<Job<T>>& guard, const RetryPolicy& policy,
              const std::exception_ptr& error, int crashes = 0) {
    const detail::ThrownFailure failure = detail::failure_of(error);
    return detail::retry(detail::GuardAccess::core(guard), policy,
                         {.reason = failure.reason,
                          .error = error,
                          .action = failure.action,
                          .last = failure.last,
                          .crashes = crashes});
}

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/jobs/retry.ipp>
#endif
