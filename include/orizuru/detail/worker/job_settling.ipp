// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of job_settling.hpp.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/jobs/group/forwarding.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/error.hpp>

#include <new>
#include <stdexcept>
#include <utility>

namespace orizuru::detail {

/// Reports an exception and returns false: no other job of a batch suffers.
template <class Action>
bool JobSettling::attempt(Action action) noexcept {
    try {
        return action();
    } catch (...) {
        tell_thrown([this](std::string_view what) { tell(WorkerEventKind::unsettled, what); });
    }
    return false;
}

/// Does the same, and postpones a step that ran out of memory.
template <class Action>
bool JobSettling::attempt_to_settle(Action action) noexcept {
    return attempt([&] {
        try {
            return action();
        } catch (const std::bad_alloc& shortage) {
            if (m_step == nullptr || m_job.settled_by() != SettledBy::nobody) {
                throw;
            }
            postpone(shortage.what());
            return false;
        }
    });
}

ORIZURU_INLINE bool JobSettling::begin(TimePoint now) noexcept {
    return attempt_to_settle(
        [=, this] { return prepare(now == TimePoint() ? Clock::now() : now); });
}

ORIZURU_INLINE void JobSettling::go_back(std::string_view why) noexcept {
    attempt_to_settle([&] {
        perform(&JobSettling::release);
        tell(WorkerEventKind::requeued, why);
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

ORIZURU_INLINE void JobSettling::finish() noexcept {
    if (m_begun == nullptr) {
        return;
    }
    attempt_to_settle([&] {
        settle([this](GuardCore& guard) { return std::optional(guard.finish(m_what)); }, m_begun);
        return true;
    });
}

ORIZURU_INLINE bool JobSettling::may_lead() const {
    const auto lock = m_job.lock_guard();
    const GuardCore& guard = *m_job.m_core;
    return guard.held() && !guard.suspected();
}

ORIZURU_INLINE void JobSettling::lead() {
    auto burst = std::make_unique<const Burst>(Burst{.first = std::string(turn())});
    const auto lock = m_job.lock_guard();
    if (!m_job.m_core->settled()) {
        m_job.m_core->lead(std::move(burst));
    }
}

ORIZURU_INLINE bool JobSettling::pass_on(JobSettling& next, std::string_view payload) {
    {
        const auto lock = m_job.lock_guard();
        GuardCore& guard = *m_job.m_core;
        if (!guard.held()) {
            return false;
        }
        const Burst& burst = *guard.burst();
        guard.lead(std::make_unique<const Burst>(Burst{burst.first, burst.done + 1, payload}));
        *next.m_job.m_core = std::move(guard);
        m_job.m_worker = SettledBy::acking;
    }
    return true;
}

ORIZURU_INLINE void JobSettling::tell_passed_on() noexcept {
    attempt([this] {
        on_acked(true);
        return true;
    });
}

ORIZURU_INLINE void JobSettling::fail_undecoded(std::string_view why) noexcept {
    attempt_to_settle([&] {
        if (!end_expired()) {
            m_queue.counts().add(Outcome::failed);
            m_failure = text_or_less(why);
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

ORIZURU_INLINE void JobSettling::try_again() noexcept {
    m_retry_at.reset();
    attempt_to_settle([this] {
        (this->*m_step)();
        return true;
    });
}

ORIZURU_INLINE void
JobSettling::tell(WorkerEventKind kind, std::string_view detail,
                  std::optional<std::chrono::milliseconds> retry_in) const noexcept {
    m_queue.tell(WorkerEvent{
        .kind = kind, .job_id = m_job.id(), .detail = detail, .payload = {}, .retry_in = retry_in});
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

ORIZURU_INLINE void JobSettling::postpone(std::string_view problem) {
    const auto pause = next_pause();
    m_retry_at = deadline_in(pause);
    tell(WorkerEventKind::unsettled, problem, pause);
}

ORIZURU_INLINE bool JobSettling::prepare(TimePoint now) {
    m_job.m_since.store(now, std::memory_order_relaxed);
    if (m_job.key().empty() ? !goes_without_key() : !takes_turn()) {
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
    if (m_job.lease_valid()) {
        return true;
    }
    // Redis knows whether another worker has the job. If not, it is served next.
    perform(&JobSettling::release);
    return false;
}

ORIZURU_INLINE std::optional<JobTime> JobSettling::expires_at() const {
    const JobHead& head = m_job.m_head;
    const auto after =
        m_kind.expires_after ? m_kind.expires_after : m_queue.options().expires_after;
    return head.expires_at || !after ? head.expires_at
                                     : std::optional(later(head.first_enqueued_at, *after));
}

/// Returns whether the job was cancelled before its handler began.
ORIZURU_INLINE bool JobSettling::end_cancelled() {
    const std::optional<std::string> reason = m_queue.cancellations().reason_of(m_job.id());
    if (reason) {
        m_job.m_stop.cancel(*reason);
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

ORIZURU_INLINE void JobSettling::conclude(const Handling& handling) {
    const SettledBy by = m_job.settled_by();
    if (by == SettledBy::requeuing) {
        return; // the next run of the job decides
    }
    const bool cancelled = m_job.m_stop.is_cancelled();
    const bool undone = HandlerCall::undone(m_job, handling);
    if (by == SettledBy::nobody && undone && !cancelled) {
        perform(&JobSettling::give_back);
        return;
    }
    std::optional<std::string> failure = this->failure(handling);
    if (cancelled && undone && !failure) {
        failure = text_or_less("left undone");
    }
    if (!failure && m_job.m_stage == JobRun::Stage::before && by != SettledBy::handler) {
        failure = text_or_less("a middleware has not called next");
    }
    QueueCounts& counts = m_queue.counts();
    counts.add_run(m_job.enqueued_at(), m_job.since(), handling.ended);
    if (failure) {
        counts.add(Outcome::failed);
    }
    if (by == SettledBy::handler) {
        tell_buried();
    }
    if (cancelled && by != SettledBy::nobody) {
        tell_too_late();
    }
    if (by == SettledBy::nobody) {
        if (failure && cancelled) {
            fail_by_cancel();
        } else if (failure) {
            fail_by(std::move(*failure), handling);
        } else if (m_way == Way::in_burst) {
            m_step = &JobSettling::succeed;
        } else {
            perform(&JobSettling::succeed);
        }
    } else if (by == SettledBy::handler && failure) {
        tell(WorkerEventKind::failed, *failure);
    } else if (by == SettledBy::handler) {
        counts.add(Outcome::settled);
    } else if (failure) {
        tell_discarded(*failure, settled_payload());
    } else {
        tell_success();
    }
}

/// Why the run has failed; empty when it has not. Shorter where memory is short.
ORIZURU_INLINE std::optional<std::string>
JobSettling::failure(const Handling& handling) const noexcept {
    const auto& why = HandlerCall::reason(m_job, handling);
    if (m_job.m_stage == JobRun::Stage::out_of_time) {
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
    m_failure = std::move(why);
    m_error = handling.error;
    m_action = handling.action;
    m_for_good = handling.for_good;
    m_asks = true;
    perform(&JobSettling::fail);
}

/// Buries a job with the reason for which it was cancelled.
ORIZURU_INLINE void JobSettling::fail_by_cancel() {
    m_cancelled = true;
    m_failure = m_job.cancelled().value_or("");
    m_action = RetryDecision::Action::bury;
    perform(&JobSettling::fail);
}

ORIZURU_INLINE void JobSettling::requeue(std::chrono::milliseconds patience) noexcept {
    const bool requeued = attempt([&] {
        const auto lock = m_job.lock_guard_within(patience);
        if (!lock || m_job.m_core->settled()) {
            return false;
        }
        m_job.m_worker = SettledBy::requeuing;
        return m_job.m_core->settle(releasing());
    });
    // Before a stop, a job is requeued only because no thread was free for it.
    if (requeued && m_queue.stop_token().stop_requested()) {
        count_requeued();
    }
}

ORIZURU_INLINE std::optional<GuardCore::GivenUp> JobSettling::give_up(TimePoint until) noexcept {
    std::optional<GuardCore::GivenUp> given;
    attempt([&] {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
        const auto lock = m_job.lock_guard_within(left);
        if (lock && !m_job.m_core->settled()) {
            m_job.m_worker = SettledBy::requeuing;
            const bool begun = m_job.changed_attributes() && attempt([this] {
                                   m_job.m_core->begin(releasing());
                                   return true;
                               });
            given = begun ? GuardCore::GivenUp() : m_job.m_core->give_up();
        } else if (lock && m_job.m_worker == SettledBy::handler) {
            m_queue.counts().add(Outcome::settled);
        }
        return true;
    });
    if (given && given->session != nullptr) {
        count_requeued();
    }
    return given;
}

ORIZURU_INLINE void JobSettling::finish_requeue() noexcept {
    const bool requeued = attempt([&] {
        const auto lock = m_job.lock_guard();
        try {
            return m_job.m_core->finish("releasing");
        } catch (const ReplyError&) {
            GuardCore::put_back(m_job.m_core->give_up());
            return true;
        }
    });
    if (requeued) {
        count_requeued();
    }
}

/// Requeues the job as it was, or with the attributes that its run has changed.
ORIZURU_INLINE Settlement JobSettling::releasing() const {
    const GuardCore& guard = *m_job.m_core;
    std::optional<JobAttributes> changed = m_job.changed_attributes();
    if (!changed) {
        return releasing_job(guard, ordered());
    }
    Scratch scratch;
    auto job = decode<Job<Raw>>(guard.payload(), scratch);
    job.attributes = std::move(*changed);
    std::string body;
    try {
        encode(job, body, guard.max_payload());
    } catch (const EncodeError&) { // too large
        body.clear();
    }
    return releasing_job(guard, ordered(), std::move(body));
}

ORIZURU_INLINE void JobSettling::count_requeued() noexcept {
    m_queue.counts().add(Outcome::requeued);
    tell(WorkerEventKind::requeued);
}

/// Reports a job that the handler has buried.
ORIZURU_INLINE void JobSettling::tell_buried() {
    std::string reason;
    std::string_view payload;
    {
        const auto lock = m_job.lock_guard();
        if (m_job.m_core->buried() == nullptr) {
            return;
        }
        reason = *m_job.m_core->buried();
        payload = m_job.m_core->payload();
    }
    m_queue.tell_died(m_job.id(), reason, payload);
}

ORIZURU_INLINE void JobSettling::tell_success() const noexcept {
    m_queue.counts().add(Outcome::succeeded);
    tell(WorkerEventKind::succeeded);
}

ORIZURU_INLINE void JobSettling::tell_discarded(std::string_view reason,
                                                std::string_view payload) const noexcept {
    m_queue.counts().add(Outcome::discarded);
    m_queue.tell(WorkerEvent{.kind = WorkerEventKind::discarded,
                             .job_id = m_job.id(),
                             .detail = reason,
                             .payload = payload});
}

/// Empty if the handler has moved the guard away.
ORIZURU_INLINE std::string_view JobSettling::settled_payload() const {
    const auto lock = m_job.lock_guard();
    return m_job.m_core->moved_from() ? std::string_view() : m_job.m_core->payload();
}

ORIZURU_INLINE std::optional<bool> JobSettling::ack(GuardCore& guard) {
    const JobHead& head = m_job.m_head;
    const JobLock lock{head.id, head.unique_id, head.unique_queue};
    m_job.m_worker = SettledBy::acking;
    if (head.ticket.empty() && head.group.empty() && !settles_later()) {
        return ack_unique(guard, lock);
    }
    if (acks_alone() && !guard.suspected()) {
        return guard.ack_later();
    }
    return send(guard, acking_job(guard, lock, ordered(), head.group));
}

/// Another worker has the job, and those of its burst before it.
ORIZURU_INLINE void JobSettling::tell_lost() const {
    int before = 0;
    {
        const auto lock = m_job.lock_guard();
        const GuardCore& guard = *m_job.m_core;
        before = guard.moved_from() || guard.burst() == nullptr ? 0 : guard.burst()->done;
    }
    tell(WorkerEventKind::lost,
         before > 0 ? "and those of its burst before it: " + std::to_string(before) : "");
}

ORIZURU_INLINE void JobSettling::on_lost(bool done) {
    if (!done) {
        tell_lost();
    }
}

ORIZURU_INLINE void JobSettling::succeed() {
    settle([this](GuardCore& guard) { return ack(guard); }, &JobSettling::on_acked);
}
ORIZURU_INLINE void JobSettling::on_acked(bool done) {
    if (!done) {
        tell_lost();
        return;
    }
    tell_success();
    if (m_job.m_stop.is_cancelled()) {
        tell_too_late();
    }
    m_queue.cancellations().end(m_job.id());
}

/// Tells that a job has ended by itself that was to be cancelled.
ORIZURU_INLINE void JobSettling::tell_too_late() const {
    tell(WorkerEventKind::cancelled_too_late, m_job.cancelled().value_or(""));
    m_queue.cancellations().end(m_job.id());
}

ORIZURU_INLINE void JobSettling::expire() {
    settle([this](GuardCore& guard) { return ack(guard); }, &JobSettling::on_expired);
}
ORIZURU_INLINE void JobSettling::on_expired(bool done) {
    if (done) {
        m_queue.counts().add(Outcome::expired);
    }
    done ? tell(WorkerEventKind::expired) : tell_lost();
}

ORIZURU_INLINE bool JobSettling::goes_without_key() {
    if (m_queue.keyed()) {
        bury_unhandled("the queue's jobs need a key: push them by orizuru::KeyedJobProducer");
    }
    return !m_queue.keyed();
}

ORIZURU_INLINE void JobSettling::bury_unhandled(std::string_view why) {
    m_queue.counts().add(Outcome::failed);
    m_failure = why;
    m_action = RetryDecision::Action::bury;
    perform(&JobSettling::fail);
}

/// Returns whether a job with a key can be handled.
ORIZURU_INLINE bool JobSettling::takes_turn() {
    if (!m_job.m_head.unique_id.empty()) {
        bury_unhandled("a job with a key cannot be unique");
        return false;
    }
    if (!has_turn(ordered(), m_queue.keys())) {
        perform(&JobSettling::enter);
        return false;
    }
    const auto lock = m_job.lock_guard();
    m_job.m_core->let_wait(m_way == Way::in_burst ? Delivery::Awaited::by_burst
                                                  : Delivery::Awaited::by_key);
    return true;
}

/// Returns whether a job can be handled as a member of its group, if it has one.
ORIZURU_INLINE bool JobSettling::goes_as_member() {
    const JobHead& head = m_job.m_head;
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
    const auto lock = m_job.lock_guard();
    m_job.m_core->let_wait(Delivery::Awaited::by_group);
    return true;
}

/// Gives a job with a key its place in the order: it was redriven, or came by another way than a
/// KeyedJobProducer.
ORIZURU_INLINE void JobSettling::enter() {
    settle([this](GuardCore& guard) { return send(guard, entering_order(guard, ordered().key)); },
           &JobSettling::on_lost);
}

ORIZURU_INLINE void JobSettling::release() {
    settle([this](GuardCore& guard) { return send(guard, releasing_job(guard, ordered())); },
           &JobSettling::on_lost);
}

/// Releases a job whose handler has ended by an exception because the worker shuts down.
ORIZURU_INLINE void JobSettling::give_back() {
    settle([this](GuardCore& guard) { return send(guard, releasing()); },
           &JobSettling::on_given_back);
}
ORIZURU_INLINE void JobSettling::on_given_back(bool done) { done ? count_requeued() : tell_lost(); }

/// A death behind the push leaves the job here, and the next worker pushes it once more.
ORIZURU_INLINE void JobSettling::push_on() {
    std::optional<ForwardedJob> job;
    try {
        {
            const auto lock = m_job.lock_guard();
            const GuardCore& guard = *m_job.m_core;
            if (guard.settled()) {
                return; // requeued
            }
            job = forwarded(guard.payload(), guard.max_payload());
        }
        m_queue.forward(*job);
    } catch (const std::invalid_argument& error) {
        bury_unhandled(error.what());
        return;
    } catch (const Error& error) {
        // It waits apart: the other queue's outage holds up no job of this one, and bounds nothing.
        m_failure = error.what();
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
    done ? tell(WorkerEventKind::failed, m_failure, before_next_forwarding)
         : tell(WorkerEventKind::lost);
}
ORIZURU_INLINE void JobSettling::leave() {
    settle([this](GuardCore& guard) { return ack(guard); }, &JobSettling::on_lost);
}

/// Retries a failed job, or ends it.
ORIZURU_INLINE void JobSettling::fail() {
    {
        const auto lock = m_job.lock_guard();
        if (m_job.m_core->settled()) {
            return; // requeued
        }
    }
    // A crash counts as an attempt. The guard is unlocked while Redis is asked for the count.
    try {
        if (!m_recoveries) {
            m_recoveries = m_queue.recoveries(m_job.id());
        }
    } catch (const Error& error) {
        postpone(error.what());
        return;
    }
    if (m_asks && !m_error && policy().decide) { // JobRun::fail, or a time limit
        m_error = std::make_exception_ptr(std::runtime_error(m_failure));
    }
    const FailedTry failed{.reason = m_failure,
                           .error = m_error,
                           .action = m_action,
                           .last = m_for_good,
                           .cancelled = m_cancelled,
                           .crashes = m_recoveries->fresh(),
                           .recoveries = m_recoveries->all,
                           .attributes =
                               m_job.m_attributes_changed ? &m_job.m_head.attributes : nullptr,
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
        m_queue.cancellations().end(m_job.id());
    }
    switch (become.outcome) {
    case RetryOutcome::put_off:
        tell(WorkerEventKind::failed, m_failure, become.delay);
        break;
    case RetryOutcome::buried:
        m_queue.tell_died(m_job.id(), become.reason, settled_payload());
        break;
    case RetryOutcome::discarded:
        tell_discarded(m_failure, settled_payload());
        break;
    case RetryOutcome::lost:
        tell_lost();
        break;
    }
}

/// Settles the guard; returns nothing if it only begins that.
ORIZURU_INLINE std::optional<bool> JobSettling::send(GuardCore& guard, Settlement settlement) {
    if (settles_later()) {
        m_what = settlement.what;
        guard.begin(std::move(settlement));
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
        const auto lock = m_job.lock_guard();
        if (m_begun == nullptr && m_job.m_core->settled()) {
            return std::nullopt; // by the handler, or requeued
        }
        m_begun = nullptr;
        try {
            done = action(*m_job.m_core);
            m_begun = done ? nullptr : conclusion;
        } catch (const Error& error) {
            problem = error.what();
            in_doubt = m_job.m_core->settled();
        }
    }
    if (done) {
        (this->*conclusion)(*done);
    } else if (in_doubt) {
        tell(WorkerEventKind::unsettled, problem); // the settlement goes on in the background
    } else if (m_begun == nullptr) {
        postpone(problem);
    }
    return done;
}

} // namespace orizuru::detail
