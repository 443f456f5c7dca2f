// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a handler is given besides the job: whether it should end, whether the job is still its own,
// and the message's guard, for a decision of its own.

#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/message_guard.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

namespace orizuru {

namespace detail {

/// What a run of a job asks of its worker.
class JobHost {
  public:
    JobHost() = default;
    JobHost(const JobHost&) = delete;
    JobHost& operator=(const JobHost&) = delete;
    virtual ~JobHost() = default;

    [[nodiscard]] virtual const std::string& queue() const noexcept = 0;
    [[nodiscard]] virtual std::stop_token stop_token() const noexcept = 0;
    virtual bool progress(std::string_view job_id, double fraction, std::string_view note) = 0;
};

template <class T>
class JobSettling;

} // namespace detail

/// One run of a job by a worker, whatever its type: what middleware sees, and a handler.
class JobRun {
  public:
    JobRun(const JobRun&) = delete;
    JobRun& operator=(const JobRun&) = delete;

    [[nodiscard]] const std::string& queue() const noexcept { return m_host->queue(); }
    [[nodiscard]] const std::string& id() const noexcept { return m_id; }
    /// From 1. Crashes of workers since the try before failed are not in it yet: they are added
    /// when this one fails. QueueOptions::max_recoveries bounds them.
    [[nodiscard]] int attempt() const noexcept { return m_attempt; }
    [[nodiscard]] JobTime enqueued_at() const noexcept { return m_enqueued_at; }
    /// When it was taken from the queue.
    [[nodiscard]] std::chrono::steady_clock::time_point taken_at() const noexcept {
        return m_taken_at;
    }
    /// When its handler began; before that, when it was taken from the queue.
    [[nodiscard]] std::chrono::steady_clock::time_point since() const noexcept { return m_since; }

    /// Asks a handler that runs for long to end, when the worker is told to stop. One that does
    /// not, and is not through when WorkerOptions::stop_timeout is over, has its job given back.
    /// A std::stop_callback of it is called in a thread that only ends the worker: until it
    /// returns, no job is given back.
    [[nodiscard]] std::stop_token stop_token() const noexcept { return m_host->stop_token(); }

    /// False when others may have the job, since Redis has not heard of this worker for the lease,
    /// or it was given back: what is done from then on is done twice. O(1), no command; waits
    /// while another thread has the guard.
    [[nodiscard]] virtual bool lease_valid() const = 0;

    /// Writes down how far the job has come, 0 to 1, for whoever asks (progress.hpp), for a day.
    /// False when it could not be written, which on_event is told: the job does not depend on it.
    /// Redis: as Progress::set; a connection of the queue's own, opened for the first call. Waits
    /// at most connect_timeout until other jobs have told theirs, as long to connect, if that is
    /// due, and command_timeout. Throws std::invalid_argument as Progress::set does.
    bool progress(double fraction, std::string_view note = {}) {
        const bool written = m_host->progress(id(), fraction, note);
        m_fraction = fraction;
        return written;
    }
    /// As last told; any thread.
    [[nodiscard]] double fraction() const noexcept { return m_fraction; }

    /// The job has failed, as if the handler had thrown a std::runtime_error; what comes of it is
    /// done when the handler has returned.
    void fail(std::string reason) { m_failure = std::move(reason); }
    [[nodiscard]] const std::optional<std::string>& failure() const noexcept { return m_failure; }

  protected:
    JobRun(detail::JobHost& host, std::string id, int attempt, JobTime enqueued_at)
        : m_host(&host), m_id(std::move(id)), m_attempt(attempt), m_enqueued_at(enqueued_at) {}
    ~JobRun() = default;

    void restart_clock() noexcept { m_since = std::chrono::steady_clock::now(); }

  private:
    detail::JobHost* m_host;
    std::string m_id; // a handler may move the guard with the job to somewhere else
    int m_attempt;
    JobTime m_enqueued_at;
    const std::chrono::steady_clock::time_point m_taken_at = std::chrono::steady_clock::now();
    std::atomic<std::chrono::steady_clock::time_point> m_since{m_taken_at};
    std::optional<std::string> m_failure;
    std::atomic<double> m_fraction{0};
};

/// The same with the job itself.
template <class T>
class JobContext final : public JobRun {
    // A handler that has the guard may ask for its lease.
    using Mutex = std::recursive_mutex;

  public:
    /// The guard of the job's message, while nobody else can use it.
    class LockedGuard {
      public:
        [[nodiscard]] MessageGuard<Job<T>>& operator*() const noexcept { return *m_guard; }
        [[nodiscard]] MessageGuard<Job<T>>* operator->() const noexcept { return m_guard; }

      private:
        friend class JobContext;
        LockedGuard(std::unique_lock<Mutex> lock, MessageGuard<Job<T>>& guard)
            : m_lock(std::move(lock)), m_guard(&guard) {}

        std::unique_lock<Mutex> m_lock;
        MessageGuard<Job<T>>* m_guard;
    };

    JobContext(detail::JobHost& host, MessageGuard<Job<T>>&& guard)
        : JobRun(host, guard->id, guard->attempt, guard->enqueued_at), m_guard(std::move(guard)) {}
    /// The same with a guard that `make_guard` returns, which is called last: when it has returned,
    /// nothing throws.
    template <std::invocable MakeGuard>
    JobContext(detail::JobHost& host, const Job<T>& job, MakeGuard make_guard)
        : JobRun(host, job.id, job.attempt, job.enqueued_at), m_guard(make_guard()) {}

    [[nodiscard]] const Job<T>& operator*() const noexcept { return *m_guard; }
    [[nodiscard]] const Job<T>* operator->() const noexcept { return &*m_guard; }

    [[nodiscard]] bool lease_valid() const override {
        const std::lock_guard lock(m_mutex);
        return m_guard.settled() ? settled_by() == SettledBy::acking : m_guard.held();
    }

    /// To settle the job otherwise than by returning: `context.guard()->bury("no such user")`,
    /// `push_after(*context.guard(), 10s)`. What is settled so the worker leaves alone; that a job
    /// was buried it tells.
    ///
    /// Locks out the worker, which may give the job back at the end of stop_timeout: it is settled
    /// then, and the guard says so by a std::logic_error. Hold it for no longer than a settlement
    /// takes.
    ///
    /// It can be moved out, to be settled later and anywhere, `auto mine =
    /// std::move(*job.guard())`: then the job is no longer here, `mine` keeps its lease, also when
    /// the worker has ended, and what the handler returns or throws does nothing to it.
    [[nodiscard]] LockedGuard guard() { return {std::unique_lock(m_mutex), m_guard}; }
    /// The same, unless somebody else holds it for longer than `patience`.
    [[nodiscard]] std::optional<LockedGuard> guard_within(std::chrono::milliseconds patience) {
        // No std::timed_mutex: clang's ThreadSanitizer does not know how that is locked.
        const auto end = std::chrono::steady_clock::now() + patience;
        std::unique_lock lock(m_mutex, std::try_to_lock);
        while (!lock && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            static_cast<void>(lock.try_lock());
        }
        return lock ? std::optional(LockedGuard(std::move(lock), m_guard)) : std::nullopt;
    }

  private:
    friend class detail::JobSettling<T>;

    /// The worker settles it by one of the first two.
    enum class SettledBy { acking, giving_back, handler, nobody };

    [[nodiscard]] SettledBy settled_by() const {
        const std::lock_guard lock(m_mutex);
        return m_guard.settled() ? m_worker : SettledBy::nobody;
    }

    mutable Mutex m_mutex; ///< guards what follows
    MessageGuard<Job<T>> m_guard;
    SettledBy m_worker = SettledBy::handler; ///< unless the worker has done something
};

namespace detail {

/// Returns nothing: an error code that it returned would be lost.
template <class F, class... Arguments>
concept HandlerOf =
    std::invocable<F&, Arguments...> && std::is_void_v<std::invoke_result_t<F&, Arguments...>>;

} // namespace detail

/// What can handle jobs of T: anything that can be copied and called with one of these, and returns
/// nothing. It is called in the first of these forms that it has.
template <class F, class T>
concept JobHandler = std::copy_constructible<F> &&
    (detail::HandlerOf<F, const T&, JobContext<T>&> ||
     detail::HandlerOf<F, const Job<T>&, JobContext<T>&> || detail::HandlerOf<F, const T&> ||
     detail::HandlerOf<F, JobContext<T>&> || detail::HandlerOf<F, const Job<T>&>);

} // namespace orizuru
