// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The steps that settle a job; each can be repeated. The class is in job_settling.hpp.

#include <orizuru/detail/worker/job_settling.hpp>

namespace orizuru::detail {

/// Reports a job that the handler has buried.
template <class T>
void JobSettling<T>::tell_buried() {
    std::string reason;
    std::string_view payload;
    {
        const auto guard = m_context.guard();
        if (guard->buried() == nullptr) {
            return;
        }
        reason = *guard->buried();
        payload = guard->payload();
    }
    m_queue.tell_died(m_context.id(), reason, payload);
}

/// Returns false when the ack did not succeed, which is reported.
template <class T>
bool JobSettling<T>::ack() {
    return done(settle([this](Guard& guard) {
        m_context.m_worker = SettledBy::acking;
        return ack_unique(guard);
    }));
}

template <class T>
void JobSettling<T>::succeed() {
    if (ack()) {
        ++m_queue.shared().counts.succeeded;
    }
}

template <class T>
void JobSettling<T>::expire() {
    if (ack()) {
        ++m_queue.shared().counts.expired;
        tell(WorkerEventKind::expired);
    }
}

template <class T>
void JobSettling<T>::release() {
    static_cast<void>(done(settle([](Guard& guard) { return guard.release(); })));
}

/// Retries a failed job, or ends it.
template <class T>
void JobSettling<T>::fail() {
    std::string_view payload;
    {
        const auto guard = m_context.guard();
        if (guard->settled()) {
            return; // requeued
        }
        payload = guard->payload();
    }
    // A crash counts as an attempt. The guard is unlocked while Redis is asked for the count.
    int crashes = 0;
    try {
        crashes = m_queue.recoveries(payload);
    } catch (const Error& error) {
        postpone(error.what());
        return;
    }
    RetryPolicy policy = m_queue.options().retry;
    if (m_for_good) {
        policy.max_attempts = 1; // this was the last attempt
    }
    const auto retried =
        settle([&](Guard& guard) { return retry(guard, policy, m_failure, crashes); });
    if (!retried) {
        return;
    }
    switch (retried->outcome) {
    case RetryOutcome::put_off:
        tell(WorkerEventKind::failed, m_failure, retried->delay);
        break;
    case RetryOutcome::buried:
        m_queue.tell_died(m_context.id(), retried->reason, payload);
        break;
    case RetryOutcome::discarded:
        tell(WorkerEventKind::discarded, m_failure);
        break;
    case RetryOutcome::lost:
        tell(WorkerEventKind::lost);
        break;
    }
}

/// Returns the settlement's result; nothing when it did not settle the job: retry_at() says then
/// whether to repeat it.
template <class T>
template <class Settlement>
auto JobSettling<T>::settle(Settlement settlement)
    -> std::optional<std::invoke_result_t<Settlement&, Guard&>> {
    std::string problem;
    bool in_doubt = false;
    {
        const auto guard = m_context.guard();
        if (guard->settled()) {
            return std::nullopt; // settled by the handler, or requeued
        }
        try {
            return settlement(*guard);
        } catch (const Error& error) {
            problem = error.what();
            in_doubt = guard->settled();
        }
    }
    if (in_doubt) {
        tell(WorkerEventKind::unsettled, problem); // the settlement goes on in the background
    } else {
        postpone(problem);
    }
    return std::nullopt;
}

} // namespace orizuru::detail
