// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of job_settling.hpp: its steps at Redis, and their repetition.

#include <orizuru/detail/jobs/group/forwarding.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/error.hpp>

#include <stdexcept>
#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE void JobSettling::succeed() {
    settle([this](GuardCore& guard) { return ack(guard); }, &JobSettling::on_acked);
}

ORIZURU_INLINE void JobSettling::on_acked(bool done) {
    if (!done) {
        reports().lost();
        return;
    }
    reports().succeeded();
    if (m_run.stop().is_cancelled()) {
        reports().cancelled_too_late();
    }
    m_queue.cancellations().end(m_run.run().id());
}

ORIZURU_INLINE void JobSettling::expire() {
    settle([this](GuardCore& guard) { return ack(guard); }, &JobSettling::on_expired);
}

ORIZURU_INLINE void JobSettling::on_expired(bool done) {
    done ? reports().expired() : reports().lost();
}

ORIZURU_INLINE void JobSettling::on_lost(bool done) {
    if (!done) {
        reports().lost();
    }
}

/// Gives a job with a key its place in the order: it was redriven, or came by another way than a
/// KeyedJobProducer.
ORIZURU_INLINE void JobSettling::enter() {
    settle(
        [this](GuardCore& guard) {
            return send(guard, entering_order(guard, m_run.ordered().key));
        },
        &JobSettling::on_lost);
}

ORIZURU_INLINE void JobSettling::release() {
    settle([this](GuardCore& guard) { return send(guard, releasing_job(guard, m_run.ordered())); },
           &JobSettling::on_lost);
}

/// Releases a job whose handler has ended by an exception because the worker shuts down.
ORIZURU_INLINE void JobSettling::give_back() {
    settle([this](GuardCore& guard) { return send(guard, requeue().settlement(guard)); },
           &JobSettling::on_given_back);
}

ORIZURU_INLINE void JobSettling::on_given_back(bool done) {
    done ? reports().requeued() : reports().lost();
}

/// A death behind the push leaves the job here, and the next worker pushes it once more.
ORIZURU_INLINE void JobSettling::push_on() {
    std::optional<ForwardedJob> job;
    try {
        {
            const auto guard = m_run.guard();
            if (guard->settled()) {
                return; // requeued
            }
            job = forwarded(guard->payload(), guard->max_payload());
        }
        m_queue.forward(*job);
    } catch (const std::invalid_argument& error) {
        bury_unhandled(error.what());
        return;
    } catch (const Error& error) {
        // It waits apart: the other queue's outage holds up no job of this one, and bounds nothing.
        m_failure = {.reason = error.what()};
        settle(
            [](GuardCore& guard) {
                return std::optional(put_off(guard, {}, due_after(before_next_forwarding)));
            },
            &JobSettling::on_put_off);
        return;
    }
    perform(&JobSettling::leave);
}

ORIZURU_INLINE void JobSettling::on_put_off(bool done) {
    done ? reports().tell(WorkerEventKind::failed, m_failure.reason, before_next_forwarding)
         : reports().tell(WorkerEventKind::lost);
}

ORIZURU_INLINE void JobSettling::leave() {
    settle([this](GuardCore& guard) { return ack(guard); }, &JobSettling::on_lost);
}

/// Retries a failed job, or ends it.
ORIZURU_INLINE void JobSettling::fail() {
    if (m_run.settled_by() != SettledRun::By::nobody) {
        return; // requeued
    }
    // A crash counts as an attempt. The guard is unlocked while Redis is asked for the count.
    try {
        if (!m_recoveries) {
            m_recoveries = m_queue.recoveries(m_run.run().id());
        }
    } catch (const Error& error) {
        postpone(error.what());
        return;
    }
    if (m_failure.asks && !m_failure.error && policy().decide) { // JobRun::fail, or a time limit
        m_failure.error = std::make_exception_ptr(std::runtime_error(m_failure.reason));
    }
    const FailedTry failed{.reason = m_failure.reason,
                           .error = m_failure.error,
                           .action = m_failure.action,
                           .last = m_failure.for_good,
                           .cancelled = m_failure.cancelled,
                           .crashes = m_recoveries->fresh(),
                           .recoveries = m_recoveries->all,
                           .attributes = m_run.changed(),
                           .now = m_queue.now()};
    settle(
        [&](GuardCore& guard) {
            RetryPlan plan = plan_retry(guard, policy(), failed);
            m_planned = std::move(plan.retried);
            return send(guard, std::move(plan.settlement));
        },
        &JobSettling::on_failed);
}

ORIZURU_INLINE void JobSettling::on_failed(bool done) {
    const Retried become = retried(std::move(m_planned), done);
    if (become.outcome == RetryOutcome::buried || become.outcome == RetryOutcome::discarded) {
        m_queue.cancellations().end(m_run.run().id());
    }
    switch (become.outcome) {
    case RetryOutcome::put_off:
        reports().tell(WorkerEventKind::failed, m_failure.reason, become.delay);
        break;
    case RetryOutcome::buried:
        reports().died(become.reason);
        break;
    case RetryOutcome::discarded:
        reports().discarded(m_failure.reason);
        break;
    case RetryOutcome::lost:
        reports().lost();
        break;
    }
}

ORIZURU_INLINE std::optional<bool> JobSettling::ack(GuardCore& guard) {
    const JobHead& head = m_run.head();
    const JobLock lock{head.id, head.unique_id, head.unique_queue};
    if (acks_deferred()) {
        return guard.ack();
    }
    if (head.ticket.empty() && head.group.empty() && !settles_later()) {
        return ack_unique(guard, lock);
    }
    if (acks_alone() && m_way == Way::with_others && !guard.suspected()) {
        return guard.ack_later();
    }
    return send(guard, acking_job(guard, lock, m_run.ordered(), head.group));
}

/// Settles the guard; returns nothing if it only begins that.
ORIZURU_INLINE std::optional<bool> JobSettling::send(GuardCore& guard, Settlement settlement) {
    if (settles_later()) {
        m_what = settlement.what;
        guard.begin(std::move(settlement));
        if (m_way == Way::with_next) {
            guard.send_begun();
        }
        return std::nullopt;
    }
    return guard.settle(std::move(settlement));
}

/// `action` settles the job's guard, or begins that and returns nothing: `finish` goes on with it
/// then. Returns what it has returned; nothing when it did not settle the job: retry_at() says then
/// whether to repeat it.
ORIZURU_INLINE std::optional<bool>
JobSettling::settle(FunctionRef<std::optional<bool>(GuardCore&)> action, Conclusion conclusion) {
    std::string problem;
    bool in_doubt = false;
    std::optional<bool> done;
    {
        const auto guard = m_run.guard();
        if (m_begun == nullptr && guard->settled()) {
            return std::nullopt; // by the handler, or requeued
        }
        guard.name_settler(SettledRun::By::worker);
        m_begun = nullptr;
        try {
            done = action(*guard);
            m_begun = done ? nullptr : conclusion;
        } catch (const Error& error) {
            problem = error.what();
            in_doubt = guard->settled();
        }
    }
    if (done) {
        (this->*conclusion)(*done);
    } else if (in_doubt) {
        // The settlement goes on in the background.
        reports().tell(WorkerEventKind::unsettled, problem);
    } else if (m_begun == nullptr) {
        postpone(problem);
    }
    return done;
}

ORIZURU_INLINE void JobSettling::finish() noexcept {
    if (m_begun == nullptr) {
        return;
    }
    attempt_to_settle([&] {
        settle([this](GuardCore& guard) { return std::optional(guard.finish(m_what)); }, m_begun);
        return true;
    });
}

ORIZURU_INLINE void JobSettling::try_again() noexcept {
    m_retry_at.reset();
    attempt_to_settle([this] {
        (this->*m_step)();
        return true;
    });
}

ORIZURU_INLINE void JobSettling::postpone(std::string_view problem) {
    const auto pause = next_pause();
    m_retry_at = deadline_in(pause);
    reports().tell(WorkerEventKind::unsettled, problem, pause);
}

ORIZURU_INLINE std::chrono::milliseconds JobSettling::next_pause() {
    if (m_step == &JobSettling::release) {
        return before_next_taking;
    }
    if (!m_pauses) {
        m_pauses.emplace();
    }
    return m_pauses->next();
}

} // namespace orizuru::detail
