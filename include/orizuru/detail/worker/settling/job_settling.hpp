// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Settles a worker's job: decides before the handler whether it runs, and after it where the job
// goes. When Redis refuses a settlement or memory is short, the owner of the job repeats it later;
// the message stays in the processing list until then.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/redis/scripts/recovery_counts.hpp>
#include <orizuru/detail/worker/job_middleware.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/settling/job_reports.hpp>
#include <orizuru/detail/worker/settling/job_requeue.hpp>
#include <orizuru/detail/worker/settling/settled_run.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// For one thread at a time.
class JobSettling {
  public:
    /// Chooses whether `end`, and `try_again` behind it, wait for Redis.
    enum class Way : std::uint8_t {
        alone,       ///< yes; successes are acked by QueueOptions::ack
        with_next,   ///< no: it is sent at once, and `finish` awaits it; deferred acks are accepted
        with_others, ///< no: AcksTogether::flush sends the acks of successes, and `finish` ends
                     ///< others
        in_burst     ///< yes; a success waits for `pass_on` or `try_again`
    };

    JobSettling(ServedQueue& queue, JobRun& job)
        : JobSettling(queue, job, queue.options_of(job.kind())) {}
    /// `kind` lives as long as the queue.
    JobSettling(ServedQueue& queue, JobRun& job, const KindOptions& kind, Way way = Way::alone)
        : m_queue(queue), m_run(job), m_kind(kind), m_way(way) {}
    JobSettling(const JobSettling&) = delete;
    JobSettling& operator=(const JobSettling&) = delete;
    ~JobSettling() = default;

    /// Returns whether the handler is to run. The guard rejects a job that is left unsettled here.
    /// `now`: the time, if the caller knows it.
    bool begin(TimePoint now = {}) noexcept;
    /// In place of `begin`: requeues the job, and tells why.
    void go_back(std::string_view why) noexcept;
    /// Settles the job after its handler.
    void end(const Handling& handling) noexcept;
    /// Waits for the settlement that `end` or `try_again` has begun, if there is one.
    void finish() noexcept;
    /// True between those.
    [[nodiscard]] bool goes_on() const noexcept { return m_begun != nullptr; }
    /// True if the job has succeeded and one of those is to follow.
    [[nodiscard]] bool succeeded() const noexcept {
        return m_way == Way::in_burst && m_step == &JobSettling::succeed && !m_retry_at;
    }
    /// True if others of its key may be handled before it is settled: it is no suspect, and no
    /// other worker can have it.
    [[nodiscard]] bool may_lead() const;
    /// The digits of its ticket (jobs/order/job_order.hpp).
    [[nodiscard]] std::string_view turn() const noexcept {
        return digits_of(m_run.head().ticket, m_queue.keys());
    }
    /// Makes it the first of a burst; its settlement ends that.
    void lead();
    /// Leaves a success to the settlement of the next job of its burst, which is nobody's yet, and
    /// outlived by its payload. Returns false if it is settled, or another worker may have it.
    bool pass_on(JobSettling& next, std::string_view payload);
    /// Behind that, with nothing locked.
    void tell_passed_on() noexcept;
    /// Saves the next step a question to Redis, which a failed job needs the answer to.
    void know(const JobRecoveries& recoveries) noexcept { m_recoveries = recoveries; }
    [[nodiscard]] bool knows_recoveries() const noexcept { return m_recoveries.has_value(); }
    /// Replaces both when no handler can get the job now: the attempt has failed.
    void fail_undecoded(std::string_view why) noexcept;
    /// Replaces both for an addressed job (forwarding.hpp), which no handler gets: forwards it.
    void forward() noexcept;
    /// Returns when to repeat the settlement that Redis refused or that ran out of memory; empty
    /// when there is none to repeat.
    [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept { return m_retry_at; }
    /// True if a success was settled without waiting for Redis.
    [[nodiscard]] bool settled_at_once() const noexcept {
        return m_step == &JobSettling::succeed && !m_retry_at && acks_deferred();
    }
    /// True if `end` settles a success without waiting for Redis, with others. Any thread.
    [[nodiscard]] bool succeeds_at_once() const noexcept {
        const auto guard = m_run.guard_within(std::chrono::milliseconds(0));
        return guard && (guard->settled() || (acks_alone() && !guard->suspected()));
    }
    void try_again() noexcept;
    /// Gives the job back. Any thread, while its handler runs.
    [[nodiscard]] JobRequeue requeue() const noexcept { return {m_queue, m_run}; }
    [[nodiscard]] JobReports reports() const noexcept { return {m_queue, m_run}; }

  private:
    // Each taking has pauses of its own, which therefore cannot grow.
    static constexpr std::chrono::seconds before_next_taking{1};
    static constexpr std::chrono::seconds before_next_forwarding{5};

    /// Why an attempt has failed, and what is said of the next one.
    struct Failure {
        std::string reason = {};
        std::exception_ptr error = {};
        RetryDecision::Action action = RetryDecision::Action::by_policy;
        bool for_good = false;
        bool asks = false; ///< the policy may decide: a handler had the job
        bool cancelled = false;
    };

    template <class Action>
    bool attempt_to_settle(Action action) noexcept;

    // Decisions.
    bool prepare(TimePoint now);
    bool goes_without_key();
    bool takes_turn();
    bool goes_as_member();
    bool end_cancelled();
    bool end_expired();
    void bury_unhandled(std::string_view why);
    void conclude(const Handling& handling);
    void fail_by(std::string why, const Handling& handling);
    void fail_by_cancel();
    [[nodiscard]] std::optional<JobTime> expires_at() const;
    [[nodiscard]] std::optional<std::string> failure(const Handling& handling) const noexcept;
    [[nodiscard]] const RetryPolicy& policy() const noexcept {
        return m_kind.retry ? *m_kind.retry : m_queue.options().retry;
    }

    // Steps; each can be repeated.
    using Step = void (JobSettling::*)();
    void perform(Step step) {
        m_step = step;
        (this->*step)();
    }
    void succeed();
    void enter();
    void fail();
    void expire();
    void release();
    void give_back();
    void push_on();
    void leave();

    // Called behind a step, once the job is settled or lost.
    using Conclusion = void (JobSettling::*)(bool done);
    void on_acked(bool done);
    void on_expired(bool done);
    void on_given_back(bool done);
    void on_failed(bool done);
    void on_lost(bool done);
    void on_put_off(bool done);

    /// Its ack does nothing besides.
    [[nodiscard]] bool acks_alone() const noexcept {
        const JobHead& head = m_run.head();
        return head.unique_id.empty() && head.ticket.empty() && head.group.empty();
    }
    /// Its guard accepts that ack, and the consumer sends it later.
    [[nodiscard]] bool acks_deferred() const noexcept {
        return acks_alone() && m_way != Way::with_others &&
               m_queue.options().ack == AckMode::deferred;
    }
    /// The step that runs does not wait for Redis.
    [[nodiscard]] bool settles_later() const noexcept {
        return m_ended && (m_way == Way::with_others || m_way == Way::with_next);
    }
    std::optional<bool> ack(GuardCore& guard);
    std::optional<bool> send(GuardCore& guard, Settlement settlement);
    std::optional<bool> settle(FunctionRef<std::optional<bool>(GuardCore&)> action,
                               Conclusion conclusion);
    [[nodiscard]] std::chrono::milliseconds next_pause();
    void postpone(std::string_view problem);

    ServedQueue& m_queue;
    const SettledRun m_run;
    const KindOptions& m_kind;
    const Way m_way;
    bool m_ended = false; ///< the handler has
    Failure m_failure;
    std::optional<JobRecoveries> m_recoveries; ///< once Redis was asked
    Retried m_planned;                         ///< the fate of a failed job, once it is settled
    Step m_step = nullptr;
    std::string_view m_what;      ///< names the settlement that has begun
    Conclusion m_begun = nullptr; ///< while a settlement goes on: what follows it
    std::optional<TimePoint> m_retry_at;
    std::optional<JitteredPauses> m_pauses;
};

/// Tells what `action` throws and returns false then, and postpones a step that ran out of memory.
template <class Action>
bool JobSettling::attempt_to_settle(Action action) noexcept {
    return reports().attempt([&] {
        try {
            return action();
        } catch (const std::bad_alloc& shortage) {
            if (m_step == nullptr || m_run.settled_by() != SettledRun::By::nobody) {
                throw;
            }
            postpone(shortage.what());
            return false;
        }
    });
}

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/worker/settling/job_settling.ipp>
#include <orizuru/detail/worker/settling/settling_steps.ipp>
#endif
