// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Puts jobs on a queue, each in its envelope, through your middleware.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/no_codec.hpp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/producer_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

/// Runs around each push, the first one outermost. It may change the job; without a call of
/// `push()` nothing is pushed.
template <class T>
using PushMiddleware = std::function<void(Job<T>& job, const std::function<void()>& push)>;

/// What can be chosen for one job.
struct JobOptions {
    /// How long after it is due it expires.
    std::optional<std::chrono::milliseconds> expires_after = {};
    /// How long it waits before it is due, by Redis' clock; 0 or less = it is due at once.
    std::chrono::milliseconds delay{};
    /// When it is due, by Redis' clock; then `delay` does not count.
    std::optional<JobTime> at = {};
    /// What travels beside the payload.
    JobAttributes attributes = {};
    /// How often it is tried in all; empty: as its RetryPolicy says.
    std::optional<int> max_attempts = {};
};

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
};

// For a T without a Codec.
template <class T>
class JobProducer : detail::NoCodec<T> {
    using detail::NoCodec<T>::NoCodec;
};

/// A producer of jobs for one queue: one connection, used by one thread at a time.
template <MessageEncodable T>
class JobProducer<T> {
  public:
    /// Connects. Throws as Producer's constructor does; std::invalid_argument for a kind that
    /// cannot be.
    JobProducer(Endpoint endpoint, std::string queue, JobProducerOptions<T> options = {})
        : m_options(checked(std::move(options))),
          m_producer(std::move(endpoint), std::move(queue),
                     {.max_payload = m_options.max_payload}) {}

    /// Makes a job and pushes it; returns its id, or nothing when the middleware has not pushed it.
    /// Redis: LPUSH, or a script when it is for later. Blocks and throws as Producer::push or
    /// push_at (scheduler.hpp), and what the middleware throws; EncodeError for attributes or a
    /// max_attempts that cannot be.
    std::optional<std::string> push(T payload, const JobOptions& options = {}) {
        Job<T> job = make_job(std::move(payload));
        job.kind = m_options.kind;
        job.attributes = options.attributes;
        job.max_attempts = options.max_attempts;
        if (options.expires_after) {
            job.expires_at = detail::later(due(options, job.enqueued_at), *options.expires_after);
        }
        bool pushed = false;
        push_through(0, job, [&] {
            if (options.at) {
                push_at(m_producer, *options.at, job);
            } else if (options.delay.count() > 0) {
                push_after(m_producer, options.delay, job);
            } else {
                m_producer.push(job);
            }
            pushed = true;
        });
        return pushed ? std::optional(std::move(job.id)) : std::nullopt;
    }

    /// Pushes without the middleware: push_all, push_unique, push_bounded; also size.
    [[nodiscard]] Producer<Job<T>>& producer() noexcept { return m_producer; }

  private:
    static JobProducerOptions<T> checked(JobProducerOptions<T> options) {
        detail::check_kind(options.kind);
        return options;
    }
    static JobTime due(const JobOptions& options, JobTime now) {
        return std::clamp(options.at.value_or(detail::later(now, options.delay)), now,
                          detail::latest_job_time);
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
};

} // namespace orizuru
