// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of job_settling.hpp: its decisions, before the handler and after it.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/jobs/group/membership.hpp>
#include <orizuru/jobs/job.hpp>

#include <memory>
#include <new>
#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE bool JobSettling::begin(TimePoint now) noexcept {
    return attempt_to_settle(
        [=, this] { return prepare(now == TimePoint() ? Clock::now() : now); });
}

ORIZURU_INLINE void JobSettling::go_back(std::string_view why) noexcept {
    attempt_to_settle([&] {
        perform(&JobSettling::release);
        reports().tell(WorkerEventKind::requeued, why);
        return true;
    });
}

ORIZURU_INLINE void JobSettling::end(const Handling& handling) noexcept {
    m_ended = true;
    attempt_to_settle([&] {
        conclude(handling);
        return true;
    });
}

ORIZURU_INLINE void JobSettling::fail_undecoded(std::string_view why) noexcept {
    attempt_to_settle([&] {
        if (!end_expired()) {
            m_queue.counts().add(Outcome::failed);
            m_failure = {.reason = text_or_less(why)};
            perform(&JobSettling::fail);
        }
        return true;
    });
}

ORIZURU_INLINE void JobSettling::forward() noexcept {
    attempt_to_settle([this] {
        perform(&JobSettling::push_on);
        return true;
    });
}

ORIZURU_INLINE bool JobSettling::prepare(TimePoint now) {
    m_run.note_begin(now);
    if (m_run.run().key().empty() ? !goes_without_key() : !takes_turn()) {
        return false;
    }
    if (!goes_as_member() || end_cancelled() || end_expired()) {
        return false;
    }
    if (m_queue.options().guarantee == Guarantee::at_most_once) {
        // A refused ack is not repeated: only a thread that goes on with the handler could do so.
        // The job is released instead and taken anew.
        m_step = &JobSettling::release;
        return settle([this](GuardCore& guard) { return ack(guard); }, &JobSettling::on_lost) ==
               true;
    }
    if (m_run.run().lease_valid()) {
        return true;
    }
    // Redis knows whether another worker has the job. If not, it is served next.
    perform(&JobSettling::release);
    return false;
}

ORIZURU_INLINE bool JobSettling::goes_without_key() {
    if (m_queue.keyed()) {
        bury_unhandled("the queue's jobs need a key: push them by orizuru::KeyedJobProducer");
    }
    return !m_queue.keyed();
}

/// Returns whether a job with a key can be handled.
ORIZURU_INLINE bool JobSettling::takes_turn() {
    if (!m_run.head().unique_id.empty()) {
        bury_unhandled("a job with a key cannot be unique");
        return false;
    }
    if (!has_turn(m_run.ordered(), m_queue.keys())) {
        perform(&JobSettling::enter);
        return false;
    }
    m_run.guard()->let_wait(m_way == Way::in_burst ? Delivery::Awaited::by_burst
                                                   : Delivery::Awaited::by_key);
    return true;
}

/// Returns whether a job can be handled as a member of its group, if it has one.
ORIZURU_INLINE bool JobSettling::goes_as_member() {
    const JobHead& head = m_run.head();
    if (!membership_of(head.group, head.id)) {
        return true;
    }
    if (!head.unique_id.empty() || !head.key.empty()) {
        bury_unhandled("a member of a group can neither be unique nor have a key");
        return false;
    }
    if (m_queue.options().guarantee == Guarantee::at_most_once) {
        bury_unhandled("a member of a group cannot be handled at_most_once: it would count as "
                       "ended before it has run");
        return false;
    }
    m_run.guard()->let_wait(Delivery::Awaited::by_group);
    return true;
}

ORIZURU_INLINE void JobSettling::bury_unhandled(std::string_view why) {
    m_queue.counts().add(Outcome::failed);
    m_failure = {.reason = std::string(why), .action = RetryDecision::Action::bury};
    perform(&JobSettling::fail);
}

/// Returns whether the job was cancelled before its handler began.
ORIZURU_INLINE bool JobSettling::end_cancelled() {
    const std::optional<std::string> reason = m_queue.cancellations().reason_of(m_run.run().id());
    if (reason) {
        m_run.stop().cancel(*reason);
        fail_by_cancel();
    }
    return reason.has_value();
}

/// Returns whether the job has expired.
ORIZURU_INLINE bool JobSettling::end_expired() {
    const std::optional<JobTime> at = expires_at();
    const bool expired = at && *at <= m_queue.now();
    if (expired) {
        perform(&JobSettling::expire);
    }
    return expired;
}

ORIZURU_INLINE std::optional<JobTime> JobSettling::expires_at() const {
    const JobHead& head = m_run.head();
    const auto after =
        m_kind.expires_after ? m_kind.expires_after : m_queue.options().expires_after;
    return head.expires_at || !after ? head.expires_at
                                     : std::optional(later(head.first_enqueued_at, *after));
}

ORIZURU_INLINE void JobSettling::conclude(const Handling& handling) {
    const SettledRun::By by = m_run.settled_by();
    if (by == SettledRun::By::requeuing) {
        return; // the next run of the job decides
    }
    const bool cancelled = m_run.stop().is_cancelled();
    const bool undone = HandlerCall::undone(m_run.run(), handling);
    if (by == SettledRun::By::nobody && undone && !cancelled) {
        perform(&JobSettling::give_back);
        return;
    }
    std::optional<std::string> failure = this->failure(handling);
    if (cancelled && undone && !failure) {
        failure = text_or_less("left undone");
    }
    if (!failure && m_run.stage() == SettledRun::Stage::before && by != SettledRun::By::handler) {
        failure = text_or_less("a middleware has not called next");
    }
    QueueCounts& counts = m_queue.counts();
    counts.add_run(m_run.run().enqueued_at(), m_run.run().since(), handling.ended);
    if (failure) {
        counts.add(Outcome::failed);
    }
    if (by == SettledRun::By::handler) {
        reports().buried();
    }
    if (cancelled && by != SettledRun::By::nobody) {
        reports().cancelled_too_late();
    }
    if (by == SettledRun::By::nobody) {
        if (failure && cancelled) {
            fail_by_cancel();
        } else if (failure) {
            fail_by(std::move(*failure), handling);
        } else if (m_way == Way::in_burst) {
            m_step = &JobSettling::succeed;
        } else {
            perform(&JobSettling::succeed);
        }
    } else if (by == SettledRun::By::handler && failure) {
        reports().tell(WorkerEventKind::failed, *failure);
    } else if (by == SettledRun::By::handler) {
        counts.add(Outcome::settled);
    } else if (failure) {
        reports().discarded(*failure);
    } else {
        reports().succeeded();
    }
}

/// Why the run has failed; empty when it has not. Shorter where memory is short.
ORIZURU_INLINE std::optional<std::string>
JobSettling::failure(const Handling& handling) const noexcept {
    const auto& why = HandlerCall::reason(m_run.run(), handling);
    if (m_run.stage() == SettledRun::Stage::out_of_time) {
        try {
            return joined({"the time limit of ", text_of(*m_queue.time_limit(m_kind)), " is over",
                           why ? ": " : "", why ? *why : ""});
        } catch (const std::bad_alloc&) {
            return text_or_less("the time limit is over");
        }
    }
    return why ? std::optional(text_or_less(*why)) : std::nullopt;
}

ORIZURU_INLINE void JobSettling::fail_by(std::string why, const Handling& handling) {
    m_failure = {.reason = std::move(why),
                 .error = handling.error,
                 .action = handling.action,
                 .for_good = handling.for_good,
                 .asks = true};
    perform(&JobSettling::fail);
}

/// Buries a job with the reason for which it was cancelled.
ORIZURU_INLINE void JobSettling::fail_by_cancel() {
    m_failure = {.reason = m_run.run().cancelled().value_or(""),
                 .action = RetryDecision::Action::bury,
                 .cancelled = true};
    perform(&JobSettling::fail);
}

ORIZURU_INLINE bool JobSettling::may_lead() const {
    const auto guard = m_run.guard();
    return guard->held() && !guard->suspected();
}

ORIZURU_INLINE void JobSettling::lead() {
    auto burst = std::make_unique<const Burst>(Burst{.first = std::string(turn())});
    const auto guard = m_run.guard();
    if (!guard->settled()) {
        guard->lead(std::move(burst));
    }
}

ORIZURU_INLINE bool JobSettling::pass_on(JobSettling& next, std::string_view payload) {
    const auto guard = m_run.guard();
    const auto passed = next.m_run.guard();
    if (!guard->held()) {
        return false;
    }
    const Burst& burst = *guard->burst();
    guard->lead(std::make_unique<const Burst>(Burst{burst.first, burst.done + 1, payload}));
    *passed = std::move(*guard);
    guard.name_settler(SettledRun::By::worker);
    return true;
}

ORIZURU_INLINE void JobSettling::tell_passed_on() noexcept {
    static_cast<void>(reports().attempt([this] {
        on_acked(true);
        return true;
    }));
}

} // namespace orizuru::detail
