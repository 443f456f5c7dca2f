// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Decides when a job that failed is tried again, and when it is given up.

#include <orizuru/jobs/backoff.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace orizuru {

/// Chooses what happens to a job that will not be tried again.
enum class Exhausted {
    bury,   ///< to the dead list
    discard ///< it is acked: nobody needs it
};

/// Decision about a job that has failed.
struct RetryDecision {
    /// Chooses what happens to the job.
    enum class Action {
        by_policy, ///< as the rest of the policy says
        retry,     ///< it is tried again after `delay`, unless this was its last try
        discard,   ///< it is acked: nobody needs it
        bury       ///< to the dead list
    };
    Action action = Action::by_policy; ///< by_policy: as if there were no `decide`
    std::chrono::milliseconds delay{}; ///< for `retry` alone; bounded to 0 to 100 years
};

/// A job that has failed, for RetryPolicy::decide. Its members are valid during the call.
struct FailedJob {
    std::string_view id;             ///< Job::id
    std::string_view kind;           ///< Job::kind
    int attempt;                     ///< number of the try that has failed, from 1
    const JobAttributes& attributes; ///< as its run has left them
};

/// A function that decides about a failed job; empty, or one of these:
///
///     RetryDecision(const std::exception_ptr& error, int attempt)
///     RetryDecision(const std::exception_ptr& error, const FailedJob& job)
///
/// It is copied with its policy. Workers call it on several threads at once.
class RetryDecider {
    template <class F, class Job>
    static constexpr bool takes =
        std::is_invocable_r_v<RetryDecision, F&, const std::exception_ptr&, Job>;

  public:
    RetryDecider() = default;
    /// Makes it empty.
    RetryDecider(std::nullptr_t) {}
    /// Takes a function of either kind; an empty std::function makes it empty.
    template <class F>
        requires(!std::same_as<F, RetryDecider> && (takes<F, int> || takes<F, const FailedJob&>))
    RetryDecider(F decide) {
        if constexpr (requires { decide == nullptr; }) {
            if (decide == nullptr) {
                return;
            }
        }
        if constexpr (takes<F, int>) {
            m_decide = [decide = std::move(decide)](const std::exception_ptr& error,
                                                    const FailedJob& job) mutable {
                return decide(error, job.attempt);
            };
        } else {
            m_decide = std::move(decide);
        }
    }

    /// True unless it is empty.
    explicit operator bool() const noexcept { return static_cast<bool>(m_decide); }
    /// Returns what the function does; throws what it throws, std::bad_function_call when empty.
    RetryDecision operator()(const std::exception_ptr& error, const FailedJob& job) const {
        return m_decide(error, job);
    }
    /// Does the same for a job of which no more is known.
    RetryDecision operator()(const std::exception_ptr& error, int attempt) const {
        return m_decide(error, {{}, {}, attempt, JobAttributes()});
    }

  private:
    std::function<RetryDecision(const std::exception_ptr&, const FailedJob&)> m_decide;
};

/// Decides if and when a failed job is tried again.
struct RetryPolicy {
    /// Number of tries of a job in all, unless the job says so itself (JobOptions::max_attempts).
    /// It is looked at when a try fails; tries that end with the death of a worker are added then,
    /// and bounded by QueueOptions::max_recoveries.
    int max_attempts = 25;
    /// Gives the time until the next try; must not be empty.
    Backoff backoff = orizuru::backoff::polynomial();
    /// Time after its first failure for which a job is tried again; 0 or less = however long it
    /// takes. Its wait before that failure does not count.
    std::chrono::milliseconds retry_for{};
    /// Queue in which it is tried again; empty = the one it came from. In a cluster it must lie in
    /// the same slot.
    std::string retry_queue = {};
    /// Chooses what happens after the last try.
    Exhausted exhausted = Exhausted::bury;
    /// Decides by the exception (std::rethrow_exception tells which one it is) and by the number of
    /// the try, from 1, or by the job's id, kind and attributes, too (RetryDecider). When it is
    /// empty, and for DoNotRetry and Discard, the policy decides. Called again when Redis refuses
    /// the settlement; when it throws, the job is buried with both reasons.
    RetryDecider decide = {};
};

/// Returns how long a job that has failed waits for its next try; none: it was tried often or long
/// enough. Pure, so that it can be tested without a queue. `seed` spreads jobs that failed
/// together: a hash of the job's id, say. Throws what the policy's backoff throws.
[[nodiscard]] inline std::optional<std::chrono::milliseconds>
next_try(const RetryPolicy& policy, int attempt, JobTime first_failed_at, JobTime now,
         std::uint64_t seed) {
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
