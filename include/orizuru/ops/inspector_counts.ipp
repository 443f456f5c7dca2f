// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of inspector.hpp that read what workers have reported.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/count_scripts.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/detail/worker/reports/queue_counts.hpp>
#include <orizuru/ops/inspector.ipp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string_view>

namespace orizuru {

namespace detail {

/// The numbers of a hash by their fields; others in it are none of ours.
class HashNumbers {
  public:
    /// Drops the connection and throws when HGETALL cannot have such a reply.
    HashNumbers(Connection& connection, const Reply& reply) {
        if (!is_strings(reply) || reply.elements.size() % 2 != 0) {
            connection.refuse("HGETALL");
        }
        for (std::size_t i = 0; i < reply.elements.size(); i += 2) {
            if (const auto number = whole_number(reply.elements[i + 1].text)) {
                m_numbers[reply.elements[i].text] = *number;
            }
        }
    }
    [[nodiscard]] std::uint64_t operator[](std::string_view field) const {
        const auto found = m_numbers.find(field);
        return found == m_numbers.end() ? 0 : found->second;
    }
    [[nodiscard]] QueueStatistics statistics(std::string queue) const {
        CountRow row{};
        for (std::size_t i = 0; i < row.size(); ++i) {
            row[i] = (*this)[count_field(i)];
        }
        return statistics_of(std::move(queue), row);
    }

  private:
    std::map<std::string, std::uint64_t, std::less<>> m_numbers;
};

} // namespace detail

ORIZURU_INLINE QueueStatistics Inspector::counts(const std::string& queue) {
    const Keys keys(queue);
    Connection& connection = *m_connections.of(keys);
    const Reply reply = connection.command(keys.counts(), "HGETALL", keys.counts());
    return detail::HashNumbers(connection, reply).statistics(queue);
}

ORIZURU_INLINE std::vector<DayCounts> Inspector::days(const std::string& queue, int count) {
    const Keys keys(queue);
    if (count < 0) {
        throw std::invalid_argument("there is no negative number of days");
    }
    constexpr int most = 90; // all others have expired
    count = std::min(count, most);
    if (count == 0) {
        return {};
    }
    Connection& connection = *m_connections.of(keys);
    const auto today = std::chrono::floor<std::chrono::days>(
        detail::clock_of(connection, queue).value_or(job_time()));
    std::vector<DayCounts> found;
    for (int i = count - 1; i >= 0; --i) {
        found.push_back({today - std::chrono::days(i)});
    }
    const Reply reply = connection.roundtrip(keys.counts(), "EVAL_RO", [&](std::string& out) {
        detail::begin_command(out, 3 + found.size());
        detail::append_argument(out, "EVAL_RO");
        detail::append_argument(out, detail::day_counts_script());
        detail::append_argument(out, count);
        for (const DayCounts& day : found) {
            detail::append_argument(out, keys.counts(detail::date_text(day.day)));
        }
    });
    if (!reply.is(Reply::Type::array) || reply.elements.size() != found.size()) {
        connection.refuse("EVAL_RO");
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        found[i].outcomes =
            detail::HashNumbers(connection, reply.elements[i]).statistics(queue).outcomes;
    }
    return found;
}

ORIZURU_INLINE std::vector<WorkerReport> Inspector::workers(const std::string& queue) {
    const Keys keys(queue);
    Connection& connection = *m_connections.of(keys);
    const std::string key = keys.consumers();
    Reply reply = connection.command(key, "EVAL_RO", detail::worker_reports_script(), 1, key,
                                     keys.worker(""));
    connection.require(reply, Reply::Type::array, "EVAL_RO");
    std::vector<WorkerReport> found;
    for (Reply& one : reply.elements) {
        if (one.elements.size() != 2 || !one.elements[0].is(Reply::Type::string)) {
            connection.refuse("EVAL_RO");
        }
        const detail::HashNumbers numbers(connection, one.elements[1]);
        found.push_back(
            {std::move(one.elements[0].text),
             JobTime(std::chrono::milliseconds(static_cast<std::int64_t>(numbers["started"]))),
             numbers["running"], numbers["threads"], numbers.statistics(queue)});
    }
    std::ranges::sort(found, {}, &WorkerReport::consumer_id);
    return found;
}

} // namespace orizuru
