// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Messages that recur by a cron expression. Each process that has the list of them may run it: an
// occurrence is pushed once however many do, since Redis notes the last one in the step that pushes
// it. Redis' clock decides.
//
// `catch_up` says how many of the occurrences that came due while no process ran are pushed. A
// recurrence whose name Redis does not know begins with its first occurrence from now on, and so
// does a renamed one. One that keeps its name and changes its expression goes on from its last
// occurrence; while processes differ in the expression, the occurrences of both come.
//
// After the clock was set back, no occurrence repeats; recurrences resume once the clock catches
// up. But when the last occurrence lies more than a day ahead, and behind the next one, the clock
// was wrong before: the recurrence starts afresh, and occurrences that came too early come again in
// their time.

#include <orizuru/codec.hpp>
#include <orizuru/connection.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/occurrences.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/jobs/cron.hpp>
#include <orizuru/jobs/time_zone.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

/// A message that is pushed again and again, at the occurrences of a cron expression.
template <class T>
struct Recurrence {
    /// Identifies it in Redis; unique within the queue.
    std::string name;
    /// Says when it occurs, by the clocks of `zone`.
    Cron cron;
    /// Makes the message of an occurrence. Several processes may each make one; one is pushed.
    std::function<T(std::chrono::sys_seconds)> message;
    /// UTC by default.
    TimeZone zone = {};
    /// The most missed occurrences to push, newest kept; 1 to 1000.
    int catch_up = 1;
};

/// Options of a Recurring.
struct RecurringOptions {
    /// The longest time between two reads of Redis' clock, in case it is set. 100 ms to 24 h.
    std::chrono::milliseconds poll = std::chrono::seconds(10);
    /// As in ProducerOptions.
    std::int64_t max_payload = std::int64_t{16} << 20;
};

/// Pushes a queue's recurring messages as they come due: one connection, used by one thread at a
/// time. When a Worker serves the queue, T is a Job, and `message` makes it by make_job.
template <MessageEncodable T>
class Recurring {
  public:
    /// Connects. Throws as Producer's constructor does; std::invalid_argument for a recurrence
    /// without a name or a message, two of one name, a number out of its range.
    Recurring(Endpoint endpoint, std::string queue, std::vector<Recurrence<T>> recurrences,
              RecurringOptions options = {});

    /// Pushes what has come due; returns how many messages.
    /// Redis: a script, O(recurrences), and one for each recurrence that is due, or for each 1 MiB
    /// of its messages, at least one.
    /// Atomic: each script.
    /// Blocks at most command_timeout per script. Throws ReplyError, ConnectionError,
    /// ProtocolError. Throws the first EncodeError or exception of a `message` after all other
    /// recurrences were pushed. Pushed occurrences stay pushed; the next call pushes the rest, no
    /// occurrence twice.
    std::uint64_t push_due() { return m_occurrences.step().pushed; }

    /// Pushes occurrences as they come due, until a stop is requested. Waits out outages of Redis.
    /// Throws ReplyError for what only a person can mend, EncodeError, and what `message` throws,
    /// as push_due.
    void run(const std::stop_token& token) { m_occurrences.run(token); }

  private:
    detail::Occurrences m_occurrences;
};

namespace detail {

/// Encodes the messages of the recurrences.
template <MessageEncodable T>
std::vector<Recurrence> encoded(std::vector<orizuru::Recurrence<T>> recurrences,
                                std::int64_t max_payload) {
    std::vector<Recurrence> all;
    for (orizuru::Recurrence<T>& recurrence : recurrences) {
        std::function<std::string(std::chrono::sys_seconds)> payload;
        if (recurrence.message) {
            payload = [message = std::move(recurrence.message),
                       max_payload](std::chrono::sys_seconds occurrence) {
                std::string bytes;
                encode(message(occurrence), bytes, max_payload);
                return bytes;
            };
        }
        all.push_back({.name = std::move(recurrence.name),
                       .cron = std::move(recurrence.cron),
                       .payload = std::move(payload),
                       .zone = std::move(recurrence.zone),
                       .catch_up = recurrence.catch_up});
    }
    return all;
}

} // namespace detail

template <MessageEncodable T>
Recurring<T>::Recurring(Endpoint endpoint, std::string queue,
                        std::vector<Recurrence<T>> recurrences, RecurringOptions options)
    : m_occurrences(std::move(queue), detail::encoded(std::move(recurrences), options.max_payload),
                    {.poll = options.poll, .max_payload = options.max_payload}) {
    m_occurrences.connect(std::make_shared<Connection>(
        detail::Route::to_key(std::move(endpoint), m_occurrences.keys().source())));
}

} // namespace orizuru
