// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Ends the run of a job whose handler has returned before: for handlers that start what goes on
// elsewhere, such as on an event loop.

#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

namespace orizuru {

namespace detail {

/// A run that ends later.
class UnendedRun {
  public:
    UnendedRun() = default;
    UnendedRun(const UnendedRun&) = delete;
    UnendedRun& operator=(const UnendedRun&) = delete;
    virtual ~UnendedRun() = default;

    // One of these, once. They wait for nothing.

    virtual void end(std::exception_ptr error) noexcept = 0;
    virtual void leave_undone() noexcept = 0;
    /// True in a forked child of the process that began it.
    [[nodiscard]] virtual bool forked() const noexcept = 0;
};

class AsyncJobTask;
class TrialAccess;

} // namespace detail

/// Ends the run of one job: once, from any thread.
///
/// A handler takes it as its last argument, keeps it and returns; the job is in flight then, and
/// its JobContext and payload stay as long as this. Call it when the work is done:
///
///     worker.handle<Order>("orders", [&](JobContext<Order>& job, JobDone done) {
///         client.post(job->payload, [done = std::move(done)](std::exception_ptr error) mutable {
///             done(error);
///         });
///     }, {.concurrency = 10'000});
///
/// If the handler itself throws, the run has failed with that, and a call has no effect. Destroyed
/// without a call, it ends the run as failed: "the handler ended without JobDone". While the worker
/// shuts down, the job is requeued instead, and the attempt does not count. Once the worker has
/// requeued the job because it did not end within stop_timeout, a call has no effect; a JobDone may
/// outlive its Worker.
///
/// For one thread at a time.
class JobDone {
  public:
    /// Ends nothing.
    JobDone() noexcept = default;
    /// Takes over the run; the other one then ends nothing.
    JobDone(JobDone&& other) noexcept = default;
    /// Ends its own run first, as the destructor does.
    JobDone& operator=(JobDone&& other) noexcept {
        JobDone taken(std::move(other));
        std::swap(m_run, taken.m_run);
        return *this;
    }
    JobDone(const JobDone&) = delete;
    JobDone& operator=(const JobDone&) = delete;
    ~JobDone() {
        if (m_run) {
            drop();
        }
    }

    /// Ends the run as a handler that returns: the job is acked, together with others that have
    /// ended. Waits for nothing: a thread of the worker does that. Afterwards the job's context is
    /// not to be used any more.
    /// Throws std::logic_error when it was called or moved from before, and in a forked child.
    void operator()() { (*this)(nullptr); }
    /// Ends the run as a handler that throws this: the job is retried as QueueOptions::retry says,
    /// and DoNotRetry and Discard have their meaning. Null: as one that returns.
    void operator()(std::exception_ptr error) { take()->end(std::move(error)); }
    /// Ends the run undone: the job is requeued at the queue's serving end, and the attempt does
    /// not count. For a loop that goes while the worker goes on; the job comes again at once, so do
    /// not answer a failure with it. With Guarantee::at_most_once, where nothing can come again,
    /// and behind JobRun::fail or the time limit, it ends the run as failed. Throws as a call does.
    void requeue() { take()->leave_undone(); }
    /// True until it is called or moved from.
    [[nodiscard]] explicit operator bool() const noexcept { return m_run != nullptr; }

  private:
    friend class detail::AsyncJobTask;
    friend class detail::TrialAccess;

    explicit JobDone(std::shared_ptr<detail::UnendedRun> run) noexcept : m_run(std::move(run)) {}

    [[nodiscard]] std::shared_ptr<detail::UnendedRun> take() {
        if (!m_run) {
            throw std::logic_error("a JobDone is called that has ended its job, or was moved from");
        }
        if (m_run->forked()) {
            throw std::logic_error("a JobDone is called in a forked child");
        }
        return std::exchange(m_run, nullptr);
    }
    void drop() noexcept {
        if (m_run->forked()) {
            // Its locks may be held for ever.
            static_cast<void>(new (std::nothrow) std::shared_ptr(std::move(m_run)));
            return;
        }
        try {
            throw std::runtime_error("the handler ended without JobDone");
        } catch (...) { // for lack of memory, say
            m_run->end(std::current_exception());
        }
    }

    std::shared_ptr<detail::UnendedRun> m_run;
};

} // namespace orizuru
