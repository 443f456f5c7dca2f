// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The context of a job: tells a handler whether to end and whether the worker still holds the job,
// and gives it the message's guard, so that it can settle the job itself.

#include <orizuru/codec.hpp>
#include <orizuru/detail/consumer/guard_access.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/detail/worker/job_host.hpp>
#include <orizuru/detail/worker/stops/run_stop.hpp>
#include <orizuru/jobs/do_not_retry.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/worker/job_done.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <functional>
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

class FetchingQueue;
class HandlerCall;
class JobLog;
class JobTask;
class ObservedRuns;
class SettledRun;
class TrialAccess;

} // namespace detail

/// One run of a job, whatever its type, as middleware and handlers see it.
class JobRun {
    // A handler that holds the guard may call lease_valid.
    using Mutex = std::recursive_mutex;

  public:
    JobRun(const JobRun&) = delete;
    JobRun& operator=(const JobRun&) = delete;
    virtual ~JobRun() = default; // middleware may cast it to JobContext<T>

    /// The name of the queue that the job was taken from. Valid as long as this run.
    [[nodiscard]] const std::string& queue() const noexcept { return m_host->queue(); }
    /// Job::id. Valid as long as this run, also when the handler has moved the guard away.
    [[nodiscard]] const std::string& id() const noexcept { return m_head.id; }
    /// The number of this attempt, from 1. Crashes of workers since the last failed attempt are not
    /// in it yet: they are added when this one fails. QueueOptions::max_recoveries bounds them.
    [[nodiscard]] int attempt() const noexcept { return m_head.attempt; }
    /// Returns when this attempt was enqueued; if it was put off, when it was due.
    [[nodiscard]] JobTime enqueued_at() const noexcept { return m_head.enqueued_at; }
    /// Which of the queue's handlers it is for; empty: the one without a kind.
    [[nodiscard]] const std::string& kind() const noexcept { return m_head.kind; }
    /// In whose order it is handled (keyed.hpp); empty: in none.
    [[nodiscard]] const std::string& key() const noexcept { return m_head.key; }
    /// Returns the job's payload, for middleware and observers: `run.payload<Order>()`. Null for a
    /// job of another type, or whose guard the handler has moved away. Valid as long as this run,
    /// until then. For the same thread as attributes().
    template <class T>
    [[nodiscard]] const T* payload() const;
    /// Returns the data that travels beside the payload. For one thread at a time: the one that
    /// handles the job, or the one that will call its JobDone.
    [[nodiscard]] const JobAttributes& attributes() const noexcept { return m_head.attributes; }
    /// Changes an attribute: for the rest of this run, and for the next one when this try fails or
    /// the job is requeued because the worker shuts down; a message that the handler itself puts
    /// off has its own. One that makes a requeued job larger than max_payload is lost. For the same
    /// thread. Throws std::invalid_argument when there are too many then or the name is empty:
    /// nothing has changed.
    void set_attribute(std::string_view name, std::string value) {
        JobAttributes changed = m_head.attributes;
        changed.insert_or_assign(std::string(name), std::move(value));
        detail::check_attributes(changed);
        const std::lock_guard lock(m_changing);
        m_head.attributes = std::move(changed);
        m_attributes_changed = true;
    }
    /// Returns when the worker took the job from the queue.
    [[nodiscard]] std::chrono::steady_clock::time_point taken_at() const noexcept {
        return m_taken_at;
    }
    /// Returns when the handler began; before that, the same as taken_at().
    [[nodiscard]] std::chrono::steady_clock::time_point since() const noexcept { return m_since; }

    /// Tells a handler that runs for long to end, when the worker shuts down, the handler's time
    /// limit is over, or the job is cancelled. A handler that then merely returns has its job
    /// acked, except behind its time limit; throw to have it requeued at a shutdown, and buried
    /// when it is cancelled. A job whose handler has not ended within WorkerOptions::stop_timeout
    /// is requeued. A std::stop_callback on this token is called on the thread that shuts the
    /// worker down, and no job is requeued until it returns; on the one that looks after time
    /// limits, and no other handler is told of its own until it returns; or on the one that looks
    /// after the queues (WorkerEvent). Any thread. Throws std::bad_alloc.
    ///
    /// The token hears of nothing once the run has ended, also when the handler has moved the guard
    /// away. Each call of a handler with a time limit has a token of its own, which hears of
    /// nothing once the call has ended; before and behind it, a middleware gets the run's.
    [[nodiscard]] std::stop_token stop_token() const { return m_stop.token(m_host->stop_token()); }
    /// The reason for which the job is to be cancelled (Inspector::cancel); nothing while it is
    /// not. Any thread.
    [[nodiscard]] std::optional<std::string> cancelled() const { return m_stop.cancelled(); }

    /// False when another worker may have the job, or its place in the limit of its queue
    /// (Worker::limit), because Redis has not heard from this one for the lease, or because the job
    /// was requeued. Effects from then on may happen twice. Time in
    /// which the host was suspended counts; time in which a hypervisor paused the virtual machine
    /// does not, as it cannot be seen. O(1), without a command; waits while another thread holds
    /// the guard.
    [[nodiscard]] bool lease_valid() const {
        const std::lock_guard lock(m_mutex);
        return m_core->settled() ? settled_by() == SettledBy::worker
                                 : m_core->held() && m_host->holds_limit(m_taken_at);
    }

    /// Publishes the progress of the job, 0 to 1, for a day; read it with Progress (progress.hpp).
    /// Returns false when it could not be written: on_event hears of it, and the job goes on.
    ///
    /// Redis:  as Progress::set, on a connection of the worker's, opened for the first call.
    /// Blocks: at most connect_timeout while other jobs write theirs, connect_timeout to connect
    ///         when that is needed, and command_timeout.
    /// Throws: std::invalid_argument as Progress::set does.
    bool progress(double fraction, std::string_view note = {}) {
        const bool written = m_host->progress(id(), fraction, note);
        m_fraction = fraction;
        return written;
    }
    /// Does the same without a wait, for a job in flight (JobDone): `told(written)` is called once
    /// on a thread of the worker, for one job after the other, and must not throw. When the
    /// connection fails, all that wait behind that are told false. Throws std::invalid_argument as
    /// well, and std::system_error when the process can have no more threads: then it is not
    /// called.
    void progress(double fraction, std::string_view note, std::function<void(bool)> told) {
        m_host->progress(id(), fraction, note, std::move(told));
        m_fraction = fraction;
    }
    /// The fraction of the last progress() call. Any thread.
    [[nodiscard]] double fraction() const noexcept { return m_fraction; }

    /// Makes the lock of a unique job last at least `ttl` from now, for a job that takes longer
    /// than expected; false when the job does not hold it (any more), or never did. Works when
    /// Redis' memory is full.
    ///
    /// Redis:  GET and PEXPIRE in a script, on the connection of progress(). Blocks as that does.
    /// Throws: ConnectionError, ReplyError, ProtocolError, and std::invalid_argument for a ttl that
    ///         cannot be: the lock is as it was, or extended where Error is in doubt.
    bool extend_unique(std::chrono::milliseconds ttl) { return m_host->extend_unique(m_head, ttl); }

    /// Marks the job as failed, as if the handler had thrown a std::runtime_error. The worker
    /// retries or buries the job when the run has ended. For the same thread.
    void fail(std::string reason) { m_failure = std::move(reason); }
    /// The reason that fail() was given last; nothing if it was not called. For the same thread.
    [[nodiscard]] const std::optional<std::string>& failure() const noexcept { return m_failure; }

  protected:
    /// Before any other use: hold().
    explicit JobRun(detail::JobHost& host) : m_host(&host) {}

    /// `guard` is the job's, and lives as long as this.
    void hold(detail::JobHead head, detail::GuardCore& guard) noexcept {
        m_head = std::move(head);
        m_core = &guard;
    }

  private:
    friend class detail::FetchingQueue;
    friend class detail::HandlerCall;
    friend class detail::JobLog;
    friend class detail::JobTask;
    friend class detail::ObservedRuns;
    friend class detail::SettledRun;
    friend class detail::TrialAccess;
    template <class T>
    friend class JobContext;

    using Lock = std::unique_lock<Mutex>;

    /// `worker`: it has settled the job for good; `requeuing`: it has given the job back.
    enum class SettledBy { worker, requeuing, handler, nobody };
    /// Progress of the handler, for the thread that handles the job.
    enum class Stage { before, begun, out_of_time };

    [[nodiscard]] Lock lock_guard() const { return Lock(m_mutex); }
    /// Not locked when another thread holds the guard for longer than `patience`.
    [[nodiscard]] Lock lock_guard_within(std::chrono::milliseconds patience) const {
        // No std::timed_mutex: clang's ThreadSanitizer does not understand its locking.
        const auto end = std::chrono::steady_clock::now() + patience;
        Lock lock(m_mutex, std::try_to_lock);
        while (!lock && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            static_cast<void>(lock.try_lock());
        }
        return lock;
    }
    [[nodiscard]] SettledBy settled_by() const {
        const std::lock_guard lock(m_mutex);
        return m_core->settled() ? m_settler : SettledBy::nobody;
    }
    /// Any thread.
    [[nodiscard]] std::optional<JobAttributes> changed_attributes() const {
        const std::lock_guard lock(m_changing);
        return m_attributes_changed ? std::optional(m_head.attributes) : std::nullopt;
    }

    detail::JobHost* m_host;
    detail::JobHead m_head;
    const std::chrono::steady_clock::time_point m_taken_at = m_host->take_time();
    std::atomic<std::chrono::steady_clock::time_point> m_since{m_taken_at};
    std::optional<std::string> m_failure;
    mutable detail::RunStop m_stop;
    mutable std::mutex m_changing; ///< guards changes of the attributes, and the next
    bool m_attributes_changed = false;
    Stage m_stage = Stage::before;
    std::atomic<double> m_fraction{0};
    mutable Mutex m_mutex; ///< guards what follows
    detail::GuardCore* m_core = nullptr;
    SettledBy m_settler = SettledBy::handler; ///< unless the worker has done something
};

/// One run of a job, with the job itself.
template <class T>
class JobContext final : public JobRun {
  public:
    /// The guard of the job's message, locked against other threads.
    class LockedGuard {
      public:
        /// The guard: settle it, or move it out. Use the reference only while this lock lives.
        [[nodiscard]] MessageGuard<Job<T>>& operator*() const noexcept { return *m_guard; }
        /// Does the same, as a pointer.
        [[nodiscard]] MessageGuard<Job<T>>* operator->() const noexcept { return m_guard; }

      private:
        friend class JobContext;
        LockedGuard(Lock lock, MessageGuard<Job<T>>& guard)
            : m_lock(std::move(lock)), m_guard(&guard) {}

        Lock m_lock;
        MessageGuard<Job<T>>* m_guard;
    };

    /// For a worker: decodes the job; its guard has nothing to settle yet. Throws what the Codec
    /// throws.
    JobContext(detail::JobHost& host, std::string_view payload, Scratch& scratch)
        : JobRun(host),
          m_guard(detail::GuardAccess::decoded<Job<T>>([&] { return decode(payload, scratch); })) {
        hold(detail::head_of(detail::GuardAccess::message(m_guard)),
             detail::GuardAccess::core(m_guard));
    }

    /// The job with its payload. Valid as long as this context, until its guard is moved out.
    [[nodiscard]] const Job<T>& operator*() const noexcept { return *m_guard; }
    /// Does the same, as a pointer.
    [[nodiscard]] const Job<T>* operator->() const noexcept { return &*m_guard; }

    /// Lets the handler settle the job itself: `context.guard()->bury("no such user")` or
    /// `push_after(*context.guard(), 10s)`. The worker leaves a settled job alone, and reports one
    /// that was buried.
    ///
    /// Locks out the worker, which requeues the job at the end of stop_timeout: settling it after
    /// that throws std::logic_error. Hold the lock for no longer than a settlement takes.
    ///
    /// You may move the guard out and settle the job later, on any thread: `auto mine =
    /// std::move(*context.guard())`. The context no longer has the job then, `mine` keeps its
    /// lease, even after the worker has ended, and the handler's return or exception does not
    /// affect it.
    ///
    /// A job with a key has its turn until it ends, and only its worker ends it: by this guard it
    /// may be rejected, released, retried (retry.hpp) and put off in its queue; all else throws
    /// std::logic_error. So does this call where KeyedOptions::burst is over 1.
    [[nodiscard]] LockedGuard guard() { return locked(lock_guard()); }
    /// Does the same; empty when another thread holds the guard for longer than `patience`.
    [[nodiscard]] std::optional<LockedGuard> guard_within(std::chrono::milliseconds patience) {
        Lock lock = lock_guard_within(patience);
        return lock ? std::optional(locked(std::move(lock))) : std::nullopt;
    }

  private:
    LockedGuard locked(Lock lock) {
        m_core->refuse_in_burst();
        return {std::move(lock), m_guard};
    }
    static Job<T> decode(std::string_view payload, Scratch& scratch) {
        using detail::JobScratch;
        scratch.as<JobScratch>().decoding = JobScratch::Part::envelope;
        auto job = detail::decode<Job<T>>(payload, scratch);
        scratch.as<JobScratch>().decoding = JobScratch::Part::nothing;
        return job;
    }

    MessageGuard<Job<T>> m_guard; ///< under the lock
};

template <class T>
const T* JobRun::payload() const {
    const auto* const context = dynamic_cast<const JobContext<T>*>(this);
    return context != nullptr && !m_core->moved_from() ? &(*context)->payload : nullptr;
}

namespace detail {

/// The handler returns void: a returned error code would be lost.
template <class F, class... Arguments>
concept HandlerOf =
    std::invocable<F&, Arguments...> && std::is_void_v<std::invoke_result_t<F&, Arguments...>>;

} // namespace detail

/// A handler that ends the job by its return: callable with one of these lists of arguments. The
/// worker calls it with the first one that it accepts.
template <class F, class T>
concept BlockingJobHandler = detail::HandlerOf < F,
        const T&, JobContext<T>
& > || detail::HandlerOf<F, const Job<T>&, JobContext<T>&> || detail::HandlerOf<F, const T&> ||
    detail::HandlerOf<F, JobContext<T>&> || detail::HandlerOf<F, const Job<T>&>;
/// A handler that ends the job later (JobDone).
template <class F, class T>
concept AsyncJobHandler =
    !BlockingJobHandler<F, T> &&
    (detail::HandlerOf<F, const T&, JobContext<T>&, JobDone> ||
     detail::HandlerOf<F, const Job<T>&, JobContext<T>&, JobDone> ||
     detail::HandlerOf<F, const T&, JobDone> || detail::HandlerOf<F, JobContext<T>&, JobDone> ||
     detail::HandlerOf<F, const Job<T>&, JobDone>);
/// A handler for jobs of T, which has a Codec: copyable, returns void.
template <class F, class T>
concept JobHandler = MessageDecodable<Job<T>> && std::copy_constructible<F> &&
    (BlockingJobHandler<F, T> || AsyncJobHandler<F, T>);

} // namespace orizuru
