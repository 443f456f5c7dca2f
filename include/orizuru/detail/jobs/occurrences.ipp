// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of occurrences.hpp.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/recurrence.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/run_until_stopped.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <stdexcept>

namespace orizuru::detail {

ORIZURU_INLINE Occurrences::Occurrences(std::string queue, std::vector<Recurrence> recurrences,
                                        const Options& options)
    : m_keys(std::move(queue)), m_recurrences(std::move(recurrences)), m_poll(options.poll) {
    validate(options);
}

ORIZURU_INLINE void Occurrences::validate(const Options& options) const {
    check_max_payload(options.max_payload);
    check_time("poll", m_poll, std::chrono::milliseconds(100));
    if (m_recurrences.size() > most_recurrences) {
        throw std::invalid_argument("at most 1000 recurrences");
    }
    std::set<std::string> names;
    for (const Recurrence& recurrence : m_recurrences) {
        const auto refuse = [&](const std::string& reason) {
            throw std::invalid_argument("recurrence '" + recurrence.name + "': " + reason);
        };
        if (recurrence.name.empty()) {
            refuse("it has no name");
        }
        if (!names.insert(recurrence.name).second) {
            refuse("another has the same name");
        }
        if (!recurrence.payload) {
            refuse("it has no message");
        }
        if (recurrence.catch_up < 1 || recurrence.catch_up > 1000) {
            refuse("catch_up must be 1 to 1000");
        }
    }
}

ORIZURU_INLINE Occurrences::Step Occurrences::step() {
    const Look seen = look();
    const TimePoint seen_at = Clock::now();
    const auto now = std::chrono::floor<std::chrono::seconds>(seen.now);
    std::chrono::milliseconds wait = m_poll;
    std::uint64_t pushed = 0;
    std::exception_ptr error;
    for (std::size_t i = 0; i < m_recurrences.size(); ++i) {
        const Recurrence& recurrence = m_recurrences[i];
        const auto due =
            recurrence.cron.latest(std::chrono::floor<std::chrono::seconds>(seen.last[i]), now,
                                   static_cast<std::size_t>(recurrence.catch_up), recurrence.zone);
        if (!due.empty()) {
            pushed += push(recurrence, due, error);
        }
        const Milliseconds next = recurrence.cron.next(now, recurrence.zone);
        if (seen.last[i] > std::max(next, seen.now + longest_set_back)) {
            begin_anew(recurrence.name, seen.last[i]);
        }
        wait = std::min(wait, next - seen.now);
    }
    if (error) {
        std::rethrow_exception(error);
    }
    return {pushed, seen_at + wait};
}

ORIZURU_INLINE Occurrences::Look Occurrences::look() {
    const Reply reply =
        exchange(*m_connection, m_keys.recurring(), "EVAL", [this](std::string& out) {
            begin_command(out, 4 + m_recurrences.size());
            append_argument(out, "EVAL");
            append_argument(out, look_at_recurrences_script);
            append_argument(out, 1);
            append_argument(out, m_keys.recurring());
            for (const Recurrence& recurrence : m_recurrences) {
                append_argument(out, recurrence.name);
            }
        });
    const auto time = [](const Reply& part) {
        return Milliseconds(std::chrono::milliseconds(part.integer));
    };
    const std::vector<Reply>& parts = reply.elements;
    if (parts.size() != m_recurrences.size() + 1 ||
        !std::ranges::all_of(parts, [](const Reply& part) { return is_count(part); })) {
        refuse(*m_connection, "EVAL");
    }
    Look seen{time(parts.front()), {}};
    std::transform(parts.begin() + 1, parts.end(), std::back_inserter(seen.last), time);
    return seen;
}

ORIZURU_INLINE std::uint64_t Occurrences::push(const Recurrence& recurrence,
                                               const std::vector<std::chrono::sys_seconds>& due,
                                               std::exception_ptr& error) {
    std::uint64_t pushed = 0;
    std::vector<Made> step;
    std::size_t bytes = 0;
    for (const std::chrono::sys_seconds occurrence : due) {
        std::string payload;
        try {
            payload = recurrence.payload(occurrence);
        } catch (...) {
            error = error ? error : std::current_exception();
            break;
        }
        if (bytes + payload.size() > most_bytes_recurring && !step.empty()) {
            pushed += push(recurrence.name, step);
            step.clear();
            bytes = 0;
        }
        bytes += payload.size();
        step.emplace_back(occurrence, std::move(payload));
    }
    return step.empty() ? pushed : pushed + push(recurrence.name, step);
}

ORIZURU_INLINE std::uint64_t Occurrences::push(const std::string& name,
                                               const std::vector<Made>& occurrences) {
    const Reply reply = exchange(*m_connection, m_keys.source(), "EVAL", [&](std::string& out) {
        begin_command(out, 6 + 2 * occurrences.size());
        append_argument(out, "EVAL");
        append_argument(out, push_occurrences_script);
        append_argument(out, 2);
        append_argument(out, m_keys.recurring());
        append_argument(out, m_keys.source());
        append_argument(out, name);
        for (const auto& [occurrence, payload] : occurrences) {
            append_argument(out, Milliseconds(occurrence).time_since_epoch().count());
            append_argument(out, payload);
        }
    });
    if (!is_count(reply)) {
        refuse(*m_connection, "EVAL");
    }
    return static_cast<std::uint64_t>(reply.integer);
}

ORIZURU_INLINE void Occurrences::begin_anew(const std::string& name, Milliseconds last) {
    m_connection->command(m_keys.recurring(), "EVAL", begin_anew_script, 1, m_keys.recurring(),
                          name, last.time_since_epoch().count());
}

ORIZURU_INLINE void Occurrences::run(const std::stop_token& token) {
    run_until_stopped(token, [this] { return step().next; });
}

} // namespace orizuru::detail
