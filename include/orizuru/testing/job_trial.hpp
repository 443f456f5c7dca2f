// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs a handler of yours once, without Redis and without a Worker, and tells what a Worker would
// do with its job then. For tests, with any framework.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/testing/trial_host.hpp>
#include <orizuru/detail/testing/trial_run.hpp>
#include <orizuru/detail/worker/handling.hpp>
#include <orizuru/detail/worker/job_middleware.hpp>
#include <orizuru/detail/worker/job_type.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/jobs/progress.hpp>
#include <orizuru/jobs/retry.hpp>
#include <orizuru/jobs/retry_policy.hpp>
#include <orizuru/producer_options.hpp>
#include <orizuru/worker/job_context.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::testing {

/// The end of a job in a Worker, once its handler has ended.
enum class Outcome {
    acked,     ///< done
    retried,   ///< failed: it comes again after delay()
    dead,      ///< failed for good: on the dead list with reason()
    discarded, ///< failed for good, and acked all the same
    requeued   ///< served again at once, and the attempt does not count
};

/// Options of a JobTrial.
struct TrialOptions {
    /// JobRun::attempt, from 1.
    int attempt = 1;
    /// JobRun::attributes.
    JobAttributes attributes = {};
    /// JobRun::kind.
    std::string kind = {};
    /// JobRun::queue.
    std::string queue = "trial";
    /// JobOptions::max_attempts; empty: as the policy says.
    std::optional<int> max_attempts = {};
    /// Time for which run() waits for the JobDone of a handler that ends later.
    std::chrono::milliseconds patience = std::chrono::minutes(1);
};

/// A job that a test gives to a handler:
///
///     JobTrial<Order> trial({7, {"tea"}}, {.attempt = 3});
///     trial.run(charge_or_wait, policy);
///     CHECK(trial.outcome() == Outcome::retried);
///
/// The handler has a JobContext as in a Worker: its lease is valid, its progress is kept, and its
/// stop token is this trial's. Only its guard has nothing to settle: settling it throws
/// std::logic_error. Test a handler that does so with a RedisServer. There is no middleware and no
/// time limit.
///
/// For one thread at a time, except request_stop().
template <class T>
class JobTrial {
  public:
    /// Throws EncodeError for a message that cannot be encoded, and for attributes, a kind or an
    /// attempt that no job can have.
    explicit JobTrial(T message, TrialOptions options = {})
        : m_patience(options.patience),
          m_host(std::make_shared<detail::TrialHost>(std::move(options.queue))) {
        Job<T> job = make_job(std::move(message));
        job.attempt = options.attempt;
        job.attributes = std::move(options.attributes);
        job.kind = std::move(options.kind);
        job.max_attempts = options.max_attempts;
        Scratch scratch;
        m_job =
            detail::decode<Job<Raw>>(detail::encoded(job, ProducerOptions().max_payload), scratch);
    }

    /// Runs a handler that a Worker takes, also one with a JobDone or a coroutine (orizuru::on): it
    /// waits for these to end; a loop of theirs runs on another thread. A job that is retried runs
    /// as its next try when this is called again; one that is requeued, as it was, with the
    /// attributes that the run has changed. Throws
    /// std::runtime_error when it does not end within TrialOptions::patience, and std::logic_error
    /// when the job has ended before.
    template <class F>
        requires JobHandler<F, T> Outcome run(F handler, const RetryPolicy& policy = {}) {
            if (m_outcome && *m_outcome != Outcome::retried && *m_outcome != Outcome::requeued) {
                throw std::logic_error("the job of this trial has ended");
            }
            const auto run = std::make_shared<detail::TrialRun<T>>(
                m_host, detail::encoded(m_job, ProducerOptions().max_payload));
            try {
                if constexpr (BlockingJobHandler<F, T>) {
                    detail::call_handler<T>(handler, run->context());
                    run->end(nullptr);
                } else {
                    detail::call_handler<T>(handler, run->context(),
                                            detail::TrialAccess::done(run));
                }
            } catch (...) {
                run->fail();
            }
            const auto handling = run->await(detail::deadline_in(m_patience));
            if (!handling) {
                throw std::runtime_error(
                    "the handler has not ended its job within the trial's patience");
            }
            conclude(run->context(), *handling, policy);
            return *m_outcome;
        }

    /// Throws std::logic_error before run().
    [[nodiscard]] Outcome outcome() const {
        if (!m_outcome) {
            throw std::logic_error("nothing has run this trial's job");
        }
        return *m_outcome;
    }
    /// Time until the next try, if it is retried.
    [[nodiscard]] std::chrono::milliseconds delay() const noexcept { return m_delay; }
    /// Why it has failed, as the dead list would have it; empty if it has not. Valid as long as
    /// this, until the next run().
    [[nodiscard]] const std::string& reason() const noexcept { return m_reason; }
    /// The attributes as the last run has left them. Valid as reason().
    [[nodiscard]] const JobAttributes& attributes() const noexcept { return m_attributes; }
    /// All progress that its runs have told, in order.
    [[nodiscard]] std::vector<JobProgress> progress() const { return m_host->progress(); }
    /// The attempt that the next run() would be.
    [[nodiscard]] int attempt() const noexcept { return m_job.attempt; }

    /// Stops as a Worker that shuts down: call it before run(), in the handler or on another
    /// thread.
    void request_stop() { m_host->request_stop(); }

  private:
    void conclude(const JobRun& run, const detail::Handling& handling, const RetryPolicy& policy) {
        m_attributes = run.attributes();
        m_job.attributes = m_attributes;
        m_delay = {};
        m_reason.clear();
        if (detail::HandlerCall::undone(run, handling)) {
            m_outcome = Outcome::requeued;
            return;
        }
        const auto& why = detail::HandlerCall::reason(run, handling);
        if (!why) {
            m_outcome = Outcome::acked;
            return;
        }
        m_reason = *why;
        fail(handling, policy);
    }
    void fail(const detail::Handling& handling, const RetryPolicy& policy) {
        const detail::FailedTry failed{
            .reason = m_reason,
            .error = handling.error ? handling.error
                                    : std::make_exception_ptr(std::runtime_error(m_reason)),
            .action = handling.action,
            .last = handling.for_good};
        const detail::RetryChoice choice = detail::choose_retry(m_job, policy, failed);
        switch (choice.outcome) {
        case RetryOutcome::put_off:
            m_outcome = Outcome::retried;
            m_delay = choice.delay;
            m_job.last_error = m_reason;
            break;
        case RetryOutcome::discarded:
            m_outcome = Outcome::discarded;
            break;
        default:
            m_outcome = Outcome::dead;
            m_reason += choice.note;
        }
    }

    std::chrono::milliseconds m_patience;
    std::shared_ptr<detail::TrialHost> m_host;
    Job<Raw> m_job;
    std::optional<Outcome> m_outcome;
    std::chrono::milliseconds m_delay{};
    std::string m_reason;
    JobAttributes m_attributes;
};

} // namespace orizuru::testing
