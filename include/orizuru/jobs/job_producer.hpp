// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Puts jobs on a queue, each in its envelope, through your middleware.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/push/bulk_schedule.hpp>
#include <orizuru/detail/jobs/push/new_job.hpp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/detail/redis/server_clock.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/bounded_push.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/jobs/unique.hpp>
#include <orizuru/jobs/unique_options.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/producer_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

/// Runs around each push, the first one outermost. It may change the job; without a call of
/// `push()` nothing is pushed.
template <class T>
using PushMiddleware = std::function<void(Job<T>& job, const std::function<void()>& push)>;

/// Options of one job.
struct JobOptions {
    /// Time from when it is due until it expires, by Redis' clock.
    std::optional<std::chrono::milliseconds> expires_after = {};
    /// Time it waits before it is due, by Redis' clock; 0 or less = it is due at once.
    std::chrono::milliseconds delay{};
    /// Time at which it is due, by Redis' clock; then `delay` does not count.
    std::optional<JobTime> at = {};
    /// Data that travels beside the payload.
    JobAttributes attributes = {};
    /// Number of tries in all; empty: as its RetryPolicy says.
    std::optional<int> max_attempts = {};
    /// Pushed only when no other job of the queue holds the lock of this id (unique.hpp).
    std::optional<std::string> unique = {};
    /// Options of the lock; without `unique` they have no effect.
    UniqueOptions unique_options = {};
    /// Pushed only when the queue is not full (bounded_push.hpp), or in place of the oldest; not
    /// together with `unique`, nor for later.
    std::optional<QueueBound> bound = {};
};

/// A job of a bulk push, with its own time.
template <class T>
struct TimedJob {
    JobTime at; ///< as JobOptions::at
    T payload;  ///< the message itself
};

/// Options of a JobProducer.
template <class T>
struct JobProducerOptions {
    /// Which of the queue's handlers the jobs are for (Worker::handle); empty: the one without a
    /// kind. 1 to 100 bytes, no control character. A worker from before there were kinds would give
    /// the payload to its only handler: update the workers first.
    std::string kind = {};
    /// Around each push, the first one outermost.
    std::vector<PushMiddleware<T>> middleware = {};
    /// As in ProducerOptions.
    std::int64_t max_payload = ProducerOptions().max_payload;
    /// As in ProducerOptions: a WAIT goes out behind each LPUSH and each script. In doubt, a job is
    /// in the queue, or waits there, or was not to be pushed (unique, bounded): only what push
    /// would have returned is unknown.
    Replicas replicas = {};
};

/// @cond
// For a T without a Codec that can encode it.
template <class T>
class JobProducer : detail::NoCodec<T, detail::Coding::encode> {
    using detail::NoCodec<T, detail::Coding::encode>::NoCodec;
};
/// @endcond

/// Pushes jobs to one queue, each in its envelope: one connection, used by one thread at a time.
///
/// The times of its jobs are by Redis' clock, however wrong the host's is: it sends TIME in each
/// new connection, when that is made or with the first push after, and again with a push a minute
/// later. A user without that right (NOPERM) gets the host's times.
template <MessageEncodable T>
class JobProducer<T> {
  public:
    /// Connects. Throws as Producer's constructor does; std::invalid_argument for a kind or
    /// replicas that cannot be.
    JobProducer(const Endpoint& endpoint, std::string queue, JobProducerOptions<T> options = {})
        : m_options(detail::with_checked_kind(std::move(options))),
          m_producer(endpoint, std::move(queue),
                     {.max_payload = m_options.max_payload, .replicas = m_options.replicas}) {
        read_clock();
    }

    /// Makes a job and pushes it; returns its id, or nothing when the middleware has not pushed it,
    /// another job holds its lock, or the queue is full.
    /// Redis: LPUSH, or a script when it is unique, bounded or for later; in a new connection TIME
    ///     before it.
    /// Blocks and throws as Producer::push, push_at (scheduler.hpp), push_unique or push_bounded,
    /// and what the middleware throws; EncodeError for attributes or a max_attempts that cannot be,
    /// std::invalid_argument for options that do not go together. Nothing was sent then.
    std::optional<std::string> push(T payload, const JobOptions& options = {}) {
        validate(options);
        read_clock();
        Job<T> job = made(std::move(payload), options, options.at);
        bool pushed = false;
        push_through(0, job, [&] { pushed = send(job, options); });
        return pushed ? std::optional(std::move(job.id)) : std::nullopt;
    }

    /// Does the same for many; returns the ids of those that were pushed, in their order. All go
    /// through the middleware before the first one is sent, and its `push()` only notes the job as
    /// it is then: when the middleware throws, none is sent. All are in memory meanwhile.
    /// Redis: as Producer::push_all; for later, a script for each 1000 jobs or 1 MiB; a script for
    ///     each job that is unique or bounded.
    /// Atomic: each LPUSH or script, the whole is not.
    /// Blocks and throws as `push`, or as Producer::push_all: of the jobs that the middleware has
    ///     pushed, Error::pushed() counts the first ones that are certainly done, and what is in
    ///     doubt is one script.
    template <RangeOf<T> R>
    std::vector<std::string> push_all(R&& payloads, const JobOptions& options = {}) {
        validate(options);
        read_clock();
        std::vector<Job<T>> jobs;
        for (const T& payload : payloads) {
            Job<T> job = made(payload, options, options.at);
            push_through(0, job, [&] { jobs.push_back(job); });
        }
        if (options.unique || options.bound) {
            return send_singly(jobs, options);
        }
        if (is_for_later(options)) {
            send_for_later(jobs, due_of(options));
        } else {
            m_producer.push_all(jobs);
        }
        return ids_of(jobs);
    }

    /// Does the same for a list in braces.
    std::vector<std::string> push_all(std::initializer_list<T> payloads,
                                      const JobOptions& options = {}) {
        return push_all<const std::initializer_list<T>&>(payloads, options);
    }

    /// Does the same as push_all for jobs with a time each, at which they are due; `delay` and `at`
    /// do not count. Jobs of one time keep their order, and so do those that are due already.
    /// Redis: a script for each 1000 jobs or 1 MiB; O(log(n)) of the scheduled messages for each.
    /// Atomic: each script, the whole is not.
    /// Blocks and throws as push_all does for later; std::invalid_argument for `unique`, `bound`
    /// and
    ///     a time beyond the year 9999: nothing was sent then.
    template <RangeOf<TimedJob<T>> R>
    std::vector<std::string> push_all_at(R&& timed_jobs, const JobOptions& options = {}) {
        if (options.unique || options.bound) {
            throw std::invalid_argument(
                "jobs with a time each can be neither unique nor have a bound");
        }
        read_clock();
        std::vector<Job<T>> jobs;
        std::vector<std::string> times;
        for (const TimedJob<T>& timed : timed_jobs) {
            Job<T> job = made(timed.payload, options, timed.at);
            const std::string time = detail::due_at(timed.at).back();
            push_through(0, job, [&] {
                jobs.push_back(job);
                times.push_back(time);
            });
        }
        send_for_later(jobs, {"each", "0"}, times);
        return ids_of(jobs);
    }

    /// Does the same for a list in braces.
    std::vector<std::string> push_all_at(std::initializer_list<TimedJob<T>> timed_jobs,
                                         const JobOptions& options = {}) {
        return push_all_at<const std::initializer_list<TimedJob<T>>&>(timed_jobs, options);
    }

    /// Pushes without the middleware; also size.
    [[nodiscard]] Producer<Job<T>>& producer() noexcept { return m_producer; }

  private:
    static bool is_for_later(const JobOptions& options) {
        return options.at || options.delay.count() > 0;
    }
    static void validate(const JobOptions& options) {
        if (options.bound && (options.unique || is_for_later(options))) {
            throw std::invalid_argument("a job with a bound can be neither unique nor for later");
        }
    }
    void read_clock() { detail::ProducerAccess::core(m_producer).read(m_clock); }
    [[nodiscard]] Job<T> made(T payload, const JobOptions& options,
                              std::optional<JobTime> at) const {
        const JobTime now = detail::job_time_by(m_clock);
        const JobTime due = at.value_or(detail::later(now, options.delay));
        return detail::new_job(std::move(payload), m_options.kind, options, now,
                               std::clamp(due, now, detail::latest_job_time));
    }
    /// Returns whether it is pushed.
    bool send(const Job<T>& job, const JobOptions& options) {
        if (options.unique) {
            return detail::push_locked(m_producer, *options.unique, job, options.unique_options,
                                       due_of(options));
        }
        if (options.bound) {
            return push_bounded(m_producer, job, *options.bound).pushed;
        }
        if (is_for_later(options)) {
            detail::schedule(m_producer, job, due_of(options));
        } else {
            m_producer.push(job);
        }
        return true;
    }
    /// Returns the ids of those that are pushed.
    std::vector<std::string> send_singly(const std::vector<Job<T>>& jobs,
                                         const JobOptions& options) {
        std::vector<std::string> ids;
        std::uint64_t done = 0;
        try {
            for (const Job<T>& job : jobs) {
                if (send(job, options)) {
                    ids.push_back(job.id);
                }
                ++done;
            }
        } catch (Error& error) {
            detail::PushCount::set(error, done);
            throw;
        }
        return ids;
    }
    /// `times` are those of the jobs, if they have one each.
    void send_for_later(const std::vector<Job<T>>& jobs, const std::vector<std::string>& due,
                        const std::vector<std::string>& times = {}) {
        std::size_t next = 0;
        detail::schedule_all(
            detail::ProducerAccess::core(m_producer), due,
            [&](std::string& out) {
                if (next == jobs.size()) {
                    return false;
                }
                detail::encode(jobs[next++], out, m_options.max_payload);
                return true;
            },
            times);
    }
    static std::vector<std::string> ids_of(const std::vector<Job<T>>& jobs) {
        std::vector<std::string> ids;
        ids.reserve(jobs.size());
        for (const Job<T>& job : jobs) {
            ids.push_back(job.id);
        }
        return ids;
    }
    static std::vector<std::string> due_of(const JobOptions& options) {
        return options.at ? detail::due_at(*options.at) : detail::due_after(options.delay);
    }

    void push_through(std::size_t middleware, Job<T>& job, const std::function<void()>& push) {
        if (middleware == m_options.middleware.size()) {
            push();
        } else {
            m_options.middleware[middleware](job, [&] { push_through(middleware + 1, job, push); });
        }
    }

    JobProducerOptions<T> m_options;
    Producer<Job<T>> m_producer;
    detail::ServerClock m_clock;
};

} // namespace orizuru
