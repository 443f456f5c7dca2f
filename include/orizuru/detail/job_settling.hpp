// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What happens to a worker's job before and behind its handler. What Redis refuses is tried again,
// in the job's thread: the message stays where it is until then.

#include <orizuru/detail/backoff.hpp>
#include <orizuru/detail/worker_queue.hpp>
#include <orizuru/error.hpp>
#include <orizuru/job.hpp>
#include <orizuru/job_context.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/retry.hpp>
#include <orizuru/unique.hpp>
#include <orizuru/worker_event.hpp>
#include <orizuru/worker_options.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

template <class T>
class JobSettling {
  public:
    JobSettling(WorkerQueue& queue, JobContext<T>& context) : m_queue(queue), m_context(context) {}

    /// Whether the handler is to run. What is told and not settled, the guard rejects.
    bool begin() noexcept {
        return attempt([this] { return prepare(); });
    }
    /// After the handler.
    void end(const std::optional<std::string>& failure) noexcept {
        attempt([&] {
            conclude(failure);
            return true;
        });
    }
    /// Back to the queue's serving end, unless it is settled.
    void give_back() noexcept;
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

    /// A running handler may hold the guard.
    static constexpr std::chrono::seconds patience{1};

    template <class Step>
    bool attempt(Step step) noexcept;
    bool prepare();
    void conclude(const std::optional<std::string>& failure);
    bool fail(Guard& guard, const std::string& reason);
    template <class Settlement>
    bool settle(Settlement settlement);

    WorkerQueue& m_queue;
    JobContext<T>& m_context;
};

/// False for what it throws, which is told: no other job of a batch suffers.
template <class T>
template <class Step>
bool JobSettling<T>::attempt(Step step) noexcept {
    try {
        return step();
    } catch (const std::exception& error) {
        tell(WorkerEventKind::unsettled, error.what());
    } catch (...) {
        tell(WorkerEventKind::unsettled, "an exception that is no std::exception");
    }
    return false;
}

template <class T>
bool JobSettling<T>::prepare() {
    const auto ack = [](Guard& guard) { return ack_unique(guard); };
    if (m_context->expires_at && m_context->expired(job_time())) {
        if (settle(ack)) {
            ++m_queue.shared().counts.expired;
            tell(WorkerEventKind::expired);
        }
        return false;
    }
    if (m_queue.options().guarantee == Guarantee::at_most_once) {
        const bool acked = settle(ack);
        m_context.m_by_worker = JobContext<T>::ByWorker::acked;
        return acked;
    }
    if (m_context.lease_valid()) {
        return true;
    }
    // Redis knows whether somebody else has it; if not, it is next again.
    settle([](Guard& guard) { return guard.release(); });
    return false;
}

template <class T>
void JobSettling<T>::conclude(const std::optional<std::string>& failure) {
    WorkerCounts& counts = m_queue.shared().counts;
    ++(failure ? counts.failed : counts.succeeded);
    if (m_queue.options().guarantee == Guarantee::at_most_once) {
        if (failure) {
            tell(WorkerEventKind::discarded, *failure);
        }
        return;
    }
    settle([&](Guard& guard) { return failure ? fail(guard, *failure) : ack_unique(guard); });
}

/// Has a failed job come again, or ends it.
template <class T>
bool JobSettling<T>::fail(Guard& guard, const std::string& reason) {
    // A crash counts as an attempt.
    const int crashes = m_queue.recoveries(guard.payload());
    const Retried retried = retry(guard, m_queue.options().retry, reason, crashes);
    switch (retried.outcome) {
    case RetryOutcome::put_off:
        tell(WorkerEventKind::failed, reason, retried.delay);
        return true;
    case RetryOutcome::buried:
        m_queue.tell_died(m_context.id(), retried.reason, guard.payload());
        return true;
    case RetryOutcome::discarded:
        tell(WorkerEventKind::discarded, reason);
        return true;
    case RetryOutcome::lost:
        break;
    }
    return false;
}

/// False when the job was not settled by this.
template <class T>
template <class Settlement>
bool JobSettling<T>::settle(Settlement settlement) {
    std::optional<Backoff> backoff;
    while (true) {
        std::string problem;
        {
            const auto guard = m_context.guard();
            if (guard->settled()) {
                return false; // by the handler, or given back
            }
            try {
                const bool done = settlement(*guard);
                if (!done) {
                    tell(WorkerEventKind::lost);
                }
                return done;
            } catch (const Error& error) {
                if (guard->settled()) {
                    tell(WorkerEventKind::unsettled, error.what());
                    return false; // in doubt, it goes on in the background
                }
                problem = error.what();
            }
        }
        if (!backoff) {
            backoff.emplace();
        }
        const auto pause = backoff->next();
        tell(WorkerEventKind::unsettled, problem, pause);
        m_queue.pause(pause);
    }
}

template <class T>
void JobSettling<T>::give_back() noexcept {
    try {
        const auto guard = m_context.guard_within(patience);
        if (guard && !(*guard)->settled() && (*guard)->release()) {
            ++m_queue.shared().counts.given_back;
            tell(WorkerEventKind::given_back);
        }
    } catch (const std::exception& error) {
        tell(WorkerEventKind::unsettled, error.what());
    }
}

template <class Handle>
void run_in_middleware(const WorkerOptions& options, JobRun& job, const Handle& handle,
                       std::size_t outermost = 0) {
    const auto& around = options.handle_middleware;
    if (outermost == around.size()) {
        handle();
    } else {
        around[outermost](job, [&] { run_in_middleware(options, job, handle, outermost + 1); });
    }
}

/// Why it failed; nothing when it did not.
template <class Handle>
std::optional<std::string> failure_of(const Handle& handle) {
    try {
        handle();
        return std::nullopt;
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "an exception that is no std::exception";
    }
}

} // namespace orizuru::detail
