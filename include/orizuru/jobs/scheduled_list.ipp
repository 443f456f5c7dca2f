// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of scheduled_list.hpp.

#include <orizuru/detail/jobs/due_time.hpp>
#include <orizuru/detail/jobs/job_in.hpp>
#include <orizuru/detail/jobs/own_lock.hpp>
#include <orizuru/detail/jobs/scheduled_scripts.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

namespace orizuru {

ORIZURU_INLINE std::optional<Job<Raw>> ScheduledEntry::job() const {
    return detail::job_in(payload);
}

ORIZURU_INLINE ScheduledList::ScheduledList(Endpoint endpoint, std::string queue)
    : m_keys(std::move(queue)),
      m_scheduled(m_keys.scheduled()),
      m_connection(
          std::make_shared<Connection>(detail::Route::to_key(std::move(endpoint), m_scheduled))) {}

ORIZURU_INLINE ScheduledList::ScheduledList(std::shared_ptr<Connection> connection,
                                            std::string queue)
    : m_keys(std::move(queue)),
      m_scheduled(m_keys.scheduled()),
      m_connection(detail::given(std::move(connection))) {}

ORIZURU_INLINE std::uint64_t ScheduledList::size() {
    const Reply reply = m_connection->command(m_scheduled, "ZCARD", m_scheduled);
    if (!detail::is_count(reply)) {
        detail::refuse(*m_connection, "ZCARD");
    }
    return static_cast<std::uint64_t>(reply.integer);
}

ORIZURU_INLINE std::vector<ScheduledEntry> ScheduledList::list(std::int64_t first,
                                                               std::int64_t count) {
    if (first < 0 || count < 0) {
        throw std::invalid_argument("a list of scheduled messages has no negative positions");
    }
    if (count == 0) {
        return {};
    }
    constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
    const std::int64_t last = count > end - first ? end : first + count - 1;
    Reply reply =
        m_connection->command(m_scheduled, "ZRANGE", m_scheduled, first, last, "WITHSCORES");
    if (!detail::is_strings(reply) || reply.elements.size() % 2 != 0) {
        detail::refuse(*m_connection, "ZRANGE");
    }
    std::vector<ScheduledEntry> entries;
    entries.reserve(reply.elements.size() / 2);
    for (std::size_t i = 0; i < reply.elements.size(); i += 2) {
        const std::optional<JobTime> due = detail::due_time(reply.elements[i + 1].text);
        if (!due) {
            detail::refuse(*m_connection, "ZRANGE");
        }
        std::string& bytes = reply.elements[i].text;
        std::string payload = bytes.substr(std::min(bytes.size(), detail::scheduled_number));
        entries.push_back({std::move(payload), *due, std::move(bytes)});
    }
    return entries;
}

ORIZURU_INLINE bool ScheduledList::cancel(const ScheduledEntry& entry) {
    return detail::remove_message(*m_connection, detail::cancel_scheduled_script, m_scheduled,
                                  entry.bytes, entry.payload, m_keys);
}

ORIZURU_INLINE bool ScheduledList::run_now(const ScheduledEntry& entry) {
    return detail::is_yes(m_connection->command(m_scheduled, "EVAL", detail::run_scheduled_script,
                                                2, m_scheduled, m_keys.source(), entry.bytes));
}

} // namespace orizuru
