// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Messages for later: they wait in a sorted set of Redis, and a scheduler moves what is due to the
// queue. Any number of schedulers may run for a queue, on any host: each step is atomic, so that a
// crash at any moment neither loses a message nor doubles one. Redis' clock decides.

#include <orizuru/codec.hpp>
#include <orizuru/connection.hpp>
#include <orizuru/detail/base/entropy.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/detail/redis/reply_class.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

namespace detail {

template <class T>
void schedule(Producer<T>& producer, const T& message, const std::vector<std::string>& due) {
    std::string payload;
    encode(message, payload, producer.options().max_payload);
    const std::vector<std::string> keys = schedule_keys(producer.keys());
    producer.command("EVAL", schedule_script(), 4, keys[0], keys[1], keys[2], keys[3], due[0],
                     due[1], payload);
}

} // namespace detail

/// Puts a message on the producer's queue at a time, by Redis' clock; at once when it is past.
/// Redis: one script, O(log(n)) of the scheduled messages; never buffered.
/// Blocks and throws as Producer::push without a buffer; std::invalid_argument for a time beyond
/// the year 9999.
template <MessageEncodable T>
void push_at(Producer<T>& producer, JobTime time, const T& message) {
    detail::schedule(producer, message, detail::due_at(time));
}

/// The same after a time from now; at once when it is not positive.
template <MessageEncodable T>
void push_after(Producer<T>& producer, std::chrono::milliseconds delay, const T& message) {
    detail::schedule(producer, message, detail::due_after(delay));
}

struct SchedulerOptions {
    /// Schedulers look at least this often, on average all of a queue together: for the case that
    /// the one that was woken has died. 100 ms to 24 h.
    std::chrono::milliseconds poll = std::chrono::seconds(5);
};

namespace detail {

inline void check(const SchedulerOptions& options) {
    if (options.poll < std::chrono::milliseconds(100) || options.poll > std::chrono::hours(24)) {
        throw std::invalid_argument("poll must be 100 ms to 24 h");
    }
}

} // namespace detail

/// A scheduler for one queue: two connections, used by one thread at a time.
class Scheduler {
  public:
    /// Connects. Throws as Producer's constructor does; std::invalid_argument for a `poll` that
    /// cannot be.
    Scheduler(Endpoint endpoint, std::string queue, SchedulerOptions options = {});

    /// Moves all that is due to the queue, in due order; returns how many.
    /// Redis: a script for each 100 of them or 1 MiB, at least one; O(log(n)) for each message.
    /// Atomic: each script.
    /// Blocks at most command_timeout per script. Throws ConnectionError, ReplyError,
    /// ProtocolError: what was moved stays moved.
    std::uint64_t move_due();

    /// Moves what becomes due as it becomes due, until a stop is requested. Waits out outages of
    /// Redis. Throws ReplyError for what only a person can mend, std::system_error when the process
    /// can have no more descriptors.
    void run(const std::stop_token& token);

  private:
    // Of a scheduler that is not heard for so long nothing more is expected.
    static constexpr std::chrono::milliseconds memory = std::chrono::seconds(60);

    struct Step {
        std::int64_t moved;
        std::chrono::milliseconds next; ///< negative: nothing is scheduled
        std::int64_t schedulers;
    };

    Step step();
    void wait(const Step& last, const std::stop_token& token);
    std::chrono::milliseconds pause(std::int64_t schedulers);

    Keys m_keys;
    SchedulerOptions m_options;
    std::string m_id;
    Connection m_connection;
    Connection m_waiting;
    std::minstd_rand m_random{static_cast<std::minstd_rand::result_type>(detail::entropy())};
};

inline Scheduler::Scheduler(Endpoint endpoint, std::string queue, SchedulerOptions options)
    : m_keys(std::move(queue)),
      m_options(options),
      m_id(detail::make_identity("scheduler").id),
      m_connection(endpoint),
      m_waiting(std::move(endpoint)) {
    detail::check(m_options);
}

inline std::uint64_t Scheduler::move_due() {
    std::uint64_t moved = 0;
    while (true) {
        const Step last = step();
        moved += static_cast<std::uint64_t>(last.moved);
        if (last.next.count() != 0) {
            return moved;
        }
    }
}

inline Scheduler::Step Scheduler::step() {
    const Reply reply = m_connection.command(
        m_keys.scheduled(), "EVAL", detail::move_due_script(), 3, m_keys.scheduled(),
        m_keys.source(), m_keys.schedulers(), detail::most_moved, detail::most_bytes_moved, m_id,
        (memory + 3 * m_options.poll).count());
    const std::vector<Reply>& parts = reply.elements;
    if (parts.size() != 3 || !detail::is_count(parts[0]) || parts[0].integer > detail::most_moved ||
        !parts[1].is(Reply::Type::integer) || !detail::is_count(parts[2])) {
        m_connection.refuse("EVAL");
    }
    return {parts[0].integer, std::chrono::milliseconds(parts[1].integer), parts[2].integer};
}

inline void Scheduler::run(const std::stop_token& token) {
    detail::JitteredPauses backoff;
    while (!token.stop_requested()) {
        try {
            const Step last = step();
            backoff.reset();
            if (last.next.count() != 0) {
                wait(last, token);
            }
            continue;
        } catch (const ReplyError& error) {
            const auto meaning = detail::classify(error);
            if (meaning != detail::ReplyClass::passing &&
                meaning != detail::ReplyClass::elsewhere) {
                throw;
            }
        } catch (const ConnectionError&) { // NOLINT(bugprone-empty-catch)
        } catch (const ProtocolError&) {   // NOLINT(bugprone-empty-catch)
        }
        detail::sleep_until(detail::deadline_in(backoff.next()), token);
    }
}

// Blocked in Redis on a connection of its own, which whoever schedules something earlier ends; the
// waiting itself is timed here: Redis ends a short block up to 100 ms late.
inline void Scheduler::wait(const Step& last, const std::stop_token& token) {
    const std::chrono::milliseconds poll = pause(last.schedulers);
    const detail::TimePoint until =
        detail::deadline_in(last.next.count() < 0 ? poll : std::min(poll, last.next));
    if (!m_waiting.begun()) {
        m_waiting.begin("BLPOP", m_keys.scheduled_wake(), 5);
    }
    m_waiting.finish(until, token);
}

/// Half to one and a half of what keeps the average of all at one look in `poll`.
inline std::chrono::milliseconds Scheduler::pause(std::int64_t schedulers) {
    const auto average = static_cast<double>(m_options.poll.count()) *
                         static_cast<double>(std::max<std::int64_t>(schedulers, 1));
    std::uniform_real_distribution<double> spread(0.5, 1.5);
    return std::chrono::milliseconds(static_cast<std::int64_t>(average * spread(m_random)));
}

} // namespace orizuru
