// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Messages that recur by a cron expression. Each process that has the list of them may run it: an
// occurrence is pushed once however many do, since Redis notes the last one in the step that pushes
// it. Redis' clock decides.
//
// What came due while nobody ran is made up for as far as `catch_up` says. A recurrence whose name
// Redis does not know begins with its first occurrence from now on; so does one that is renamed.
// One that keeps its name and changes its expression goes on from its last occurrence; while
// processes differ in it, the occurrences of both come.
//
// A clock that is set back repeats nothing: all waits until it is where it was. But a last
// occurrence that lies more than a day ahead, and behind the next one, is taken for the trace of a
// clock that was wrong: the recurrence begins anew, and what came too early comes again in its
// time.

#include <orizuru/codec.hpp>
#include <orizuru/connection.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/recurrence.hpp>
#include <orizuru/detail/redis/reply_class.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/cron.hpp>
#include <orizuru/jobs/time_zone.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru {

template <class T>
struct Recurrence {
    /// Under which Redis knows it: one of its own within the queue.
    std::string name;
    Cron cron;
    /// Makes the message of an occurrence. Of several processes each may make one, and one is
    /// pushed.
    std::function<T(std::chrono::sys_seconds)> message;
    TimeZone zone = {};
    /// Of the occurrences that came due since the last look, how many are pushed, the latest of
    /// them; 1 to 1000.
    int catch_up = 1;
};

struct RecurringOptions {
    /// Redis' clock is looked at so often at least, for the case that it is set. 100 ms to 24 h.
    std::chrono::milliseconds poll = std::chrono::seconds(10);
    /// As in ProducerOptions.
    std::int64_t max_payload = std::int64_t{16} << 20;
};

/// The recurring messages of one queue: one connection, used by one thread at a time. Of a queue
/// that a Worker serves T is a Job, and `message` makes it by make_job.
template <MessageEncodable T>
class Recurring {
  public:
    /// Connects. Throws as Producer's constructor does; std::invalid_argument for what cannot be:
    /// a recurrence without a name or a message, two of one name, a number out of its range.
    Recurring(Endpoint endpoint, std::string queue, std::vector<Recurrence<T>> recurrences,
              RecurringOptions options = {});

    /// Pushes what has come due; returns how many messages.
    /// Redis: a script, O(recurrences), and one for each recurrence that is due, or for each 1 MiB
    /// of its messages, at least one.
    /// Atomic: each script.
    /// Blocks at most command_timeout per script. Throws ReplyError, ConnectionError,
    /// ProtocolError; EncodeError and what `message` throws, the first of them, once all other
    /// recurrences are through: what was pushed stays pushed, and the next call pushes what was
    /// not, no occurrence twice.
    std::uint64_t push_due() { return step().pushed; }

    /// Pushes occurrences as they come due, until a stop is requested. Waits out outages of Redis.
    /// Throws ReplyError for what only a person can mend, EncodeError, and what `message` throws,
    /// as push_due.
    void run(const std::stop_token& token);

  private:
    using Milliseconds = std::chrono::sys_time<std::chrono::milliseconds>;

    struct Look {
        Milliseconds now;
        std::vector<Milliseconds> last; ///< occurrences, as the recurrences are in order
    };
    struct Step {
        std::uint64_t pushed;
        detail::TimePoint next;
    };

    /// An occurrence and the bytes of its message.
    using Made = std::pair<std::chrono::sys_seconds, std::string>;

    void check() const;
    Step step();
    Look look();
    /// As far as there are messages: why there are no more goes to `error`, when it is empty.
    std::uint64_t push(const Recurrence<T>& recurrence,
                       const std::vector<std::chrono::sys_seconds>& due, std::exception_ptr& error);
    std::uint64_t push(const std::string& name, const std::vector<Made>& occurrences);
    void begin_anew(const std::string& name, Milliseconds last);

    Keys m_keys;
    std::vector<Recurrence<T>> m_recurrences;
    RecurringOptions m_options;
    Connection m_connection;
};

template <MessageEncodable T>
Recurring<T>::Recurring(Endpoint endpoint, std::string queue,
                        std::vector<Recurrence<T>> recurrences, RecurringOptions options)
    : m_keys(std::move(queue)),
      m_recurrences(std::move(recurrences)),
      m_options(options),
      m_connection(std::move(endpoint)) {
    check();
}

template <MessageEncodable T>
void Recurring<T>::check() const {
    detail::check_max_payload(m_options.max_payload);
    if (m_options.poll < std::chrono::milliseconds(100) ||
        m_options.poll > std::chrono::hours(24)) {
        throw std::invalid_argument("poll must be 100 ms to 24 h");
    }
    if (m_recurrences.size() > detail::most_recurrences) {
        throw std::invalid_argument("at most 1000 recurrences");
    }
    std::set<std::string> names;
    for (const Recurrence<T>& recurrence : m_recurrences) {
        const auto refuse = [&](const std::string& reason) {
            throw std::invalid_argument("recurrence '" + recurrence.name + "': " + reason);
        };
        if (recurrence.name.empty()) {
            refuse("it has no name");
        }
        if (!names.insert(recurrence.name).second) {
            refuse("another has the same name");
        }
        if (!recurrence.message) {
            refuse("it has no message");
        }
        if (recurrence.catch_up < 1 || recurrence.catch_up > 1000) {
            refuse("catch_up must be 1 to 1000");
        }
    }
}

template <MessageEncodable T>
typename Recurring<T>::Step Recurring<T>::step() {
    const Look seen = look();
    const detail::TimePoint seen_at = detail::Clock::now();
    const auto now = std::chrono::floor<std::chrono::seconds>(seen.now);
    std::chrono::milliseconds wait = m_options.poll;
    std::uint64_t pushed = 0;
    std::exception_ptr error;
    for (std::size_t i = 0; i < m_recurrences.size(); ++i) {
        const Recurrence<T>& recurrence = m_recurrences[i];
        const auto due =
            recurrence.cron.latest(std::chrono::floor<std::chrono::seconds>(seen.last[i]), now,
                                   static_cast<std::size_t>(recurrence.catch_up), recurrence.zone);
        if (!due.empty()) {
            pushed += push(recurrence, due, error);
        }
        const Milliseconds next = recurrence.cron.next(now, recurrence.zone);
        if (seen.last[i] > std::max(next, seen.now + detail::longest_set_back)) {
            begin_anew(recurrence.name, seen.last[i]);
        }
        wait = std::min(wait, next - seen.now);
    }
    if (error) {
        std::rethrow_exception(error);
    }
    return {pushed, seen_at + wait};
}

template <MessageEncodable T>
typename Recurring<T>::Look Recurring<T>::look() {
    const Reply reply =
        m_connection.roundtrip(m_keys.recurring(), "EVAL", [this](std::string& out) {
            detail::begin_command(out, 4 + m_recurrences.size());
            detail::append_argument(out, "EVAL");
            detail::append_argument(out, detail::look_at_recurrences_script());
            detail::append_argument(out, 1);
            detail::append_argument(out, m_keys.recurring());
            for (const Recurrence<T>& recurrence : m_recurrences) {
                detail::append_argument(out, recurrence.name);
            }
        });
    const auto time = [](const Reply& part) {
        return Milliseconds(std::chrono::milliseconds(part.integer));
    };
    const std::vector<Reply>& parts = reply.elements;
    if (parts.size() != m_recurrences.size() + 1 ||
        !std::ranges::all_of(parts, [](const Reply& part) { return detail::is_count(part); })) {
        m_connection.refuse("EVAL");
    }
    Look seen{time(parts.front()), {}};
    std::transform(parts.begin() + 1, parts.end(), std::back_inserter(seen.last), time);
    return seen;
}

template <MessageEncodable T>
std::uint64_t Recurring<T>::push(const Recurrence<T>& recurrence,
                                 const std::vector<std::chrono::sys_seconds>& due,
                                 std::exception_ptr& error) {
    std::uint64_t pushed = 0;
    std::vector<Made> step;
    std::size_t bytes = 0;
    for (const std::chrono::sys_seconds occurrence : due) {
        std::string payload;
        try {
            detail::encode(recurrence.message(occurrence), payload, m_options.max_payload);
        } catch (...) {
            error = error ? error : std::current_exception();
            break;
        }
        if (bytes + payload.size() > detail::most_bytes_recurring && !step.empty()) {
            pushed += push(recurrence.name, step);
            step.clear();
            bytes = 0;
        }
        bytes += payload.size();
        step.emplace_back(occurrence, std::move(payload));
    }
    return step.empty() ? pushed : pushed + push(recurrence.name, step);
}

template <MessageEncodable T>
std::uint64_t Recurring<T>::push(const std::string& name, const std::vector<Made>& occurrences) {
    const Reply reply = m_connection.roundtrip(m_keys.source(), "EVAL", [&](std::string& out) {
        detail::begin_command(out, 6 + 2 * occurrences.size());
        detail::append_argument(out, "EVAL");
        detail::append_argument(out, detail::push_occurrences_script());
        detail::append_argument(out, 2);
        detail::append_argument(out, m_keys.recurring());
        detail::append_argument(out, m_keys.source());
        detail::append_argument(out, name);
        for (const auto& [occurrence, payload] : occurrences) {
            detail::append_argument(out, Milliseconds(occurrence).time_since_epoch().count());
            detail::append_argument(out, payload);
        }
    });
    if (!detail::is_count(reply)) {
        m_connection.refuse("EVAL");
    }
    return static_cast<std::uint64_t>(reply.integer);
}

template <MessageEncodable T>
void Recurring<T>::begin_anew(const std::string& name, Milliseconds last) {
    m_connection.command(m_keys.recurring(), "EVAL", detail::begin_anew_script(), 1,
                         m_keys.recurring(), name, last.time_since_epoch().count());
}

template <MessageEncodable T>
void Recurring<T>::run(const std::stop_token& token) {
    detail::JitteredPauses backoff;
    while (!token.stop_requested()) {
        detail::TimePoint until;
        try {
            until = step().next;
            backoff.reset();
        } catch (const ReplyError& error) {
            const auto meaning = detail::classify(error);
            if (meaning != detail::ReplyClass::passing &&
                meaning != detail::ReplyClass::elsewhere) {
                throw;
            }
            until = detail::deadline_in(backoff.next());
        } catch (const ConnectionError&) {
            until = detail::deadline_in(backoff.next());
        } catch (const ProtocolError&) {
            until = detail::deadline_in(backoff.next());
        }
        detail::sleep_until(until, token);
    }
}

} // namespace orizuru
