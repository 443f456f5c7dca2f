// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Puts jobs on a queue with keys.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/jobs/push/new_job.hpp>
#include <orizuru/detail/producer/producer_core.hpp>
#include <orizuru/detail/producer/script_pushes.hpp>
#include <orizuru/detail/redis/server_clock.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/producer_options.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

/// Options of one job with a key. It cannot be unique, bounded or for later: its place in the order
/// is the one at its push.
struct KeyedJobOptions {
    /// Time until it expires, by Redis' clock. It is acked then when it comes to its turn.
    std::optional<std::chrono::milliseconds> expires_after = {};
    /// Data that travels beside the payload.
    JobAttributes attributes = {};
    /// Number of tries in all; empty: as its RetryPolicy says.
    std::optional<int> max_attempts = {};
};

/// Options of a KeyedJobProducer.
struct KeyedJobProducerOptions {
    /// Which of the queue's handlers the jobs are for, as JobProducerOptions::kind.
    std::string kind = {};
    /// As in ProducerOptions.
    std::int64_t max_payload = ProducerOptions().max_payload;
    /// As in ProducerOptions: a WAIT goes out behind each script.
    Replicas replicas = {};
};

/// @cond
// For a T without a Codec that can encode it.
template <class T>
class KeyedJobProducer : detail::NoCodec<T, detail::Coding::encode> {
    using detail::NoCodec<T, detail::Coding::encode>::NoCodec;
};
/// @endcond

/// Pushes jobs with keys to one queue, each in its envelope: one connection, used by one thread at
/// a time. Several producers may push to one key; Redis orders their pushes.
///
/// The times of its jobs are by Redis' clock, as those of a JobProducer.
template <MessageEncodable T>
class KeyedJobProducer<T> {
  public:
    /// Connects. Throws as JobProducer's constructor does.
    KeyedJobProducer(const Endpoint& endpoint, std::string queue,
                     KeyedJobProducerOptions options = {})
        : m_options(detail::with_checked_kind(std::move(options))),
          m_producer(endpoint, std::move(queue),
                     {.max_payload = m_options.max_payload, .replicas = m_options.replicas}) {
        m_producer.read(m_clock);
    }

    /// Makes a job and pushes it behind all of its key; returns its id.
    /// Redis: a script, O(1): LPUSH to the queue, or RPUSH behind the others of the key.
    /// Atomic: all of it.
    /// Blocks and throws as Producer::push; std::invalid_argument for an empty key or one of more
    ///     than 512 bytes, EncodeError for attributes or a max_attempts that cannot be. Nothing was
    ///     sent then.
    std::string push(std::string_view key, const T& payload, const KeyedJobOptions& options = {}) {
        return std::move(push_all(key, std::span(std::addressof(payload), 1), options).front());
    }

    /// Does the same for many of one key, in their order; returns their ids.
    /// Redis: a script for up to 500 jobs or 1 MiB each.
    /// Atomic: each script; the whole is not.
    /// Blocks and throws as `push`. Of the jobs, Error::pushed() counts the first ones that are
    ///     certainly pushed; what is in doubt is one script.
    template <RangeOf<T> R>
    std::vector<std::string> push_all(std::string_view key, R&& payloads,
                                      const KeyedJobOptions& options = {}) {
        detail::ScriptPushes pushes = pushes_of(key);
        std::vector<std::string> ids;
        for (const T& payload : payloads) {
            auto job =
                detail::new_job(payload, m_options.kind, options, detail::job_time_by(m_clock));
            job.key = key;
            job.ticket = detail::make_ticket(keys());
            const std::string bytes = detail::encoded(job, m_options.max_payload);
            ids.push_back(std::move(job.id)); // before it may be sent: it needs memory
            pushes.add(detail::digits_of(job.ticket, keys()), bytes);
        }
        pushes.send();
        return ids;
    }

    /// Returns the keys of the queue in Redis. Valid as long as this.
    [[nodiscard]] const Keys& keys() const { return m_producer.keys(); }

  private:
    /// Reads the clock, too.
    detail::ScriptPushes pushes_of(std::string_view key) {
        if (key.empty()) {
            throw std::invalid_argument("the job has no key");
        }
        detail::check_key(key);
        m_producer.read(m_clock);
        return {m_producer, detail::push_in_order_script(), detail::order_keys(keys(), key)};
    }

    KeyedJobProducerOptions m_options;
    detail::ProducerCore m_producer;
    detail::ServerClock m_clock;
};

} // namespace orizuru
