// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The steps of a job's settling, each of which can be repeated. The class is in
// job_settling.hpp.

#include <orizuru/detail/worker/job_settling.hpp>

namespace orizuru::detail {

/// What the handler has put on the dead list by the guard.
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

/// False when it was not acked by this, which is told.
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

/// Has a failed job come again, or ends it.
template <class T>
void JobSettling<T>::fail() {
    std::string_view payload;
    {
        const auto guard = m_context.guard();
        if (guard->settled()) {
            return; // given back
        }
        payload = guard->payload();
    }
    // A crash counts as an attempt. Nobody has to wait for the guard until that is known.
    int crashes = 0;
    try {
        crashes = m_queue.recoveries(payload);
    } catch (const Error& error) {
        postpone(error.what());
        return;
    }
    RetryPolicy policy = m_queue.options().retry;
    if (m_for_good) {
        policy.max_attempts = 1; // this was the last one
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

/// What the settlement returns; nothing when the job was not settled by it: then retry_at() says
/// whether Redis has refused it.
template <class T>
template <class Settlement>
auto JobSettling<T>::settle(Settlement settlement)
    -> std::optional<std::invoke_result_t<Settlement&, Guard&>> {
    std::string problem;
    bool in_doubt = false;
    {
        const auto guard = m_context.guard();
        if (guard->settled()) {
            return std::nullopt; // by the handler, or given back
        }
        try {
            return settlement(*guard);
        } catch (const Error& error) {
            problem = error.what();
            in_doubt = guard->settled();
        }
    }
    if (in_doubt) {
        tell(WorkerEventKind::unsettled, problem); // it goes on in the background
    } else {
        postpone(problem);
    }
    return std::nullopt;
}

} // namespace orizuru::detail
