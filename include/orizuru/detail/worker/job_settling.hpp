// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Settles a worker's job: decides before the handler whether it runs, and after it where the job
// goes. When Redis refuses a settlement or memory is short, the owner of the job repeats it later;
// the message stays in the processing list until then.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/worker/job_middleware.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/unique.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace orizuru::detail {

/// For one thread at a time, except `requeue`.
template <class T>
class JobSettling {
  public:
    JobSettling(ServedQueue& queue, JobContext<T>& context) : m_queue(queue), m_context(context) {}
    JobSettling(const JobSettling&) = delete;
    JobSettling& operator=(const JobSettling&) = delete;
    ~JobSettling() = default;

    /// Returns whether the handler is to run. The guard rejects a job that is left unsettled here.
    bool begin() noexcept {
        return attempt_to_settle([this] { return prepare(); });
    }
    /// Settles the job after its handler.
    void end(const Handling& handling) noexcept {
        attempt_to_settle([&] {
            conclude(handling);
            return true;
        });
    }
    /// Replaces both when no handler can get the job now: the attempt has failed.
    void fail_undecoded(std::string_view why) noexcept {
        attempt_to_settle([&] {
            if (!end_expired()) {
                ++m_queue.shared().counts.failed;
                m_failure = text_or_less(why);
                perform(&JobSettling::fail);
            }
            return true;
        });
    }
    /// When to repeat the settlement that Redis refused or that ran out of memory; empty when there
    /// is none to repeat.
    [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept { return m_retry_at; }
    void try_again() noexcept {
        m_retry_at.reset();
        attempt_to_settle([this] {
            (this->*m_step)();
            return true;
        });
    }
    /// Requeues the job at the queue's serving end, unless it is settled. Waits up to `patience`
    /// for the guard.
    void requeue(std::chrono::milliseconds patience) noexcept;
    /// Call it with the guard unlocked.
    void tell(WorkerEventKind kind, std::string_view detail = {},
              std::optional<std::chrono::milliseconds> retry_in = {}) const noexcept {
        m_queue.tell(WorkerEvent{.kind = kind,
                                 .job_id = m_context.id(),
                                 .detail = detail,
                                 .payload = {},
                                 .retry_in = retry_in});
    }

  private:
    using Guard = MessageGuard<Job<T>>;
    using SettledBy = typename JobContext<T>::SettledBy;

    // Each taking has pauses of its own, which therefore cannot grow.
    static constexpr std::chrono::seconds before_next_taking{1};

    template <class Action>
    bool attempt(Action action) noexcept;
    template <class Action>
    bool attempt_to_settle(Action action) noexcept;
    bool prepare();
    bool end_expired();
    void conclude(const Handling& handling);
    void perform(void (JobSettling::*step)()) {
        m_step = step;
        (this->*step)();
    }
    bool ack();
    void tell_buried();
    // The steps; each can be repeated.
    void succeed();
    void fail();
    void expire();
    void release();
    template <class Settlement>
    auto settle(Settlement settlement) -> std::optional<std::invoke_result_t<Settlement&, Guard&>>;
    [[nodiscard]] bool done(std::optional<bool> settled) const noexcept {
        if (settled == false) {
            tell(WorkerEventKind::lost);
        }
        return settled == true;
    }

    [[nodiscard]] std::chrono::milliseconds next_pause() {
        if (m_step == &JobSettling::release) {
            return before_next_taking;
        }
        if (!m_pauses) {
            m_pauses.emplace();
        }
        return m_pauses->next();
    }
    void postpone(std::string_view problem) {
        const auto pause = next_pause();
        m_retry_at = deadline_in(pause);
        tell(WorkerEventKind::unsettled, problem, pause);
    }

    ServedQueue& m_queue;
    JobContext<T>& m_context;
    std::string m_failure; ///< why the attempt failed
    bool m_for_good = false;
    void (JobSettling::*m_step)() = nullptr;
    std::optional<TimePoint> m_retry_at;
    std::optional<JitteredPauses> m_pauses;
};

/// Reports an exception and returns false: no other job of a batch suffers.
template <class T>
template <class Action>
bool JobSettling<T>::attempt(Action action) noexcept {
    try {
        return action();
    } catch (...) {
        tell_thrown([this](std::string_view what) { tell(WorkerEventKind::unsettled, what); });
    }
    return false;
}

/// Does the same, and postpones a step that ran out of memory.
template <class T>
template <class Action>
bool JobSettling<T>::attempt_to_settle(Action action) noexcept {
    return attempt([&] {
        try {
            return action();
        } catch (const std::bad_alloc& shortage) {
            if (m_step == nullptr || m_context.guard()->settled()) {
                throw;
            }
            postpone(shortage.what());
            return false;
        }
    });
}

template <class T>
bool JobSettling<T>::prepare() {
    m_context.restart_clock();
    if (end_expired()) {
        return false;
    }
    if (m_queue.options().guarantee == Guarantee::at_most_once) {
        // A refused ack is not repeated: only a thread that goes on with the handler could do so.
        // The job is released instead and taken anew.
        m_step = &JobSettling::release;
        return ack();
    }
    if (m_context.lease_valid()) {
        return true;
    }
    // Redis knows whether another worker has the job. If not, it is served next.
    perform(&JobSettling::release);
    return false;
}

/// Returns whether the job has expired.
template <class T>
bool JobSettling<T>::end_expired() {
    const bool expired = m_context->expires_at && m_context->expired(job_time());
    if (expired) {
        perform(&JobSettling::expire);
    }
    return expired;
}

template <class T>
void JobSettling<T>::conclude(const Handling& handling) {
    const SettledBy by = m_context.settled_by();
    if (by == SettledBy::requeuing) {
        return; // the next run of the job decides
    }
    std::optional<std::string_view> failure;
    if (m_context.failure()) {
        failure = *m_context.failure();
    } else if (handling.thrown) {
        failure = *handling.thrown;
    }
    if (!failure && !handling.begun && by != SettledBy::handler) {
        failure = "a middleware has not called next";
    }
    WorkerCounts& counts = m_queue.shared().counts;
    if (failure) {
        ++counts.failed;
    }
    if (by == SettledBy::handler) {
        tell_buried();
    }
    if (by == SettledBy::nobody) {
        if (failure) {
            m_failure = text_or_less(*failure);
            m_for_good = handling.for_good;
            perform(&JobSettling::fail);
        } else {
            perform(&JobSettling::succeed);
        }
    } else if (failure) {
        tell(by == SettledBy::handler ? WorkerEventKind::failed : WorkerEventKind::discarded,
             *failure);
    } else {
        ++(by == SettledBy::handler ? counts.settled : counts.succeeded);
    }
}

template <class T>
void JobSettling<T>::requeue(std::chrono::milliseconds patience) noexcept {
    const bool requeued = attempt([&] {
        const auto guard = m_context.guard_within(patience);
        if (!guard || (*guard)->settled()) {
            return false;
        }
        m_context.m_worker = SettledBy::requeuing;
        return (*guard)->release();
    });
    // Before a stop, a job is requeued only because no thread was free for it.
    if (requeued && m_queue.stop_token().stop_requested()) {
        ++m_queue.shared().counts.requeued;
        tell(WorkerEventKind::requeued);
    }
}

} // namespace orizuru::detail
