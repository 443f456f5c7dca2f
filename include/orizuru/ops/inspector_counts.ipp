// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of inspector.hpp that read the numbers of queues, and what workers have reported.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/count_scripts.hpp>
#include <orizuru/detail/ops/queue_states.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/detail/worker/reports/queue_counts.hpp>
#include <orizuru/detail/worker/reports/reported_jobs.hpp>
#include <orizuru/error.hpp>
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
            detail::refuse(connection, "HGETALL");
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

/// The value of a field of a hash, a view of it; empty where there is none.
[[nodiscard]] inline std::string_view text_of(const Reply& hash, std::string_view field) {
    for (std::size_t i = 0; i + 1 < hash.elements.size(); i += 2) {
        if (hash.elements[i].text == field) {
            return hash.elements[i + 1].text;
        }
    }
    return {};
}

} // namespace detail

ORIZURU_INLINE void Inspector::take_together(
    std::span<const std::string> queues, const Refused& refused,
    const std::function<std::size_t(Connection&, std::span<const Keys> some)>& take) {
    const auto topology = detail::EndpointParts::of(m_connections->endpoint()).address->topology;
    const std::size_t most =
        topology == detail::Topology::cluster ? 1 : detail::most_queues_together;
    std::size_t alone = 0; // so many of the next ones, for one of them was refused
    while (!queues.empty()) {
        std::vector<Keys> some;
        try {
            some.emplace_back(queues.front());
            while (some.size() < std::min(alone > 0 ? 1 : most, queues.size())) {
                try {
                    some.emplace_back(queues[some.size()]);
                } catch (const std::invalid_argument&) {
                    break; // it is the first one next
                }
            }
            const std::size_t done = take(*m_connections->of(some.front()), some);
            queues = queues.subspan(done);
            alone = done == 0 ? 1 : alone > 0 ? alone - 1 : 0;
        } catch (const ConnectionError&) {
            throw;
        } catch (const std::exception& error) {
            if (some.size() > 1) {
                alone = some.size();
                continue;
            }
            if (!refused) {
                throw;
            }
            refused(queues.front(), error);
            queues = queues.subspan(1);
            alone = alone > 0 ? alone - 1 : 0;
        }
    }
}

ORIZURU_INLINE std::vector<QueueState> Inspector::states(std::span<const std::string> queues,
                                                         const Refused& refused) {
    std::vector<QueueState> found;
    take_together(queues, refused, [&](Connection& connection, std::span<const Keys> some) {
        auto states = detail::queue_states(connection, some);
        const auto now = detail::clock_of(connection, some.front().source());
        std::size_t done = 0;
        while (done < states.size() && states[done]) {
            states[done]->now = now;
            found.push_back(*std::move(states[done++]));
        }
        return done;
    });
    return found;
}

ORIZURU_INLINE QueueState Inspector::state(const std::string& queue) {
    return states({&queue, 1}).at(0);
}

ORIZURU_INLINE std::vector<QueueStatistics>
Inspector::all_counts(std::span<const std::string> queues, const Refused& refused) {
    std::vector<QueueStatistics> found;
    take_together(queues, refused, [&](Connection& connection, std::span<const Keys> some) {
        const std::string first = some.front().counts();
        const Reply reply = detail::exchange(connection, first, "EVAL_RO", [&](std::string& out) {
            detail::begin_command(out, 3 + some.size());
            detail::append_argument(out, "EVAL_RO");
            detail::append_argument(out, detail::day_counts_script);
            detail::append_argument(out, some.size());
            for (const Keys& keys : some) {
                detail::append_argument(out, keys.counts());
            }
        });
        if (!reply.is(Reply::Type::array) || reply.elements.size() != some.size()) {
            detail::refuse(connection, "EVAL_RO");
        }
        for (std::size_t i = 0; i < some.size(); ++i) {
            const detail::HashNumbers numbers(connection, reply.elements[i]);
            found.push_back(numbers.statistics(some[i].source()));
        }
        return some.size();
    });
    return found;
}

ORIZURU_INLINE QueueStatistics Inspector::counts(const std::string& queue) {
    const Keys keys(queue);
    Connection& connection = *m_connections->of(keys);
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
    Connection& connection = *m_connections->of(keys);
    const auto today = std::chrono::floor<std::chrono::days>(
        detail::clock_of(connection, queue).value_or(job_time()));
    std::vector<DayCounts> found;
    for (int i = count - 1; i >= 0; --i) {
        found.push_back({today - std::chrono::days(i)});
    }
    const Reply reply =
        detail::exchange(connection, keys.counts(), "EVAL_RO", [&](std::string& out) {
            detail::begin_command(out, 3 + found.size());
            detail::append_argument(out, "EVAL_RO");
            detail::append_argument(out, detail::day_counts_script);
            detail::append_argument(out, count);
            for (const DayCounts& day : found) {
                detail::append_argument(out, keys.counts(detail::date_text(day.day)));
            }
        });
    if (!reply.is(Reply::Type::array) || reply.elements.size() != found.size()) {
        detail::refuse(connection, "EVAL_RO");
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        found[i].outcomes =
            detail::HashNumbers(connection, reply.elements[i]).statistics(queue).outcomes;
    }
    return found;
}

ORIZURU_INLINE std::vector<WorkerReport> Inspector::workers(const std::string& queue) {
    const Keys keys(queue);
    Connection& connection = *m_connections->of(keys);
    const std::string key = keys.consumers();
    Reply reply =
        connection.command(key, "EVAL_RO", detail::worker_reports_script, 1, key, keys.worker(""));
    detail::require_type(connection, reply, Reply::Type::array, "EVAL_RO");
    std::vector<WorkerReport> found;
    for (Reply& one : reply.elements) {
        if (one.elements.size() != 2 || !one.elements[0].is(Reply::Type::string)) {
            detail::refuse(connection, "EVAL_RO");
        }
        const detail::HashNumbers numbers(connection, one.elements[1]);
        found.push_back({.consumer_id = std::move(one.elements[0].text),
                         .started = JobTime(std::chrono::milliseconds(
                             static_cast<std::int64_t>(numbers["started"]))),
                         .running = numbers["running"],
                         .threads = numbers["threads"],
                         .in_batches = numbers["batches"] == 1,
                         .runs = detail::reported_jobs(detail::text_of(one.elements[1], "jobs")),
                         .jobs = numbers.statistics(queue)});
    }
    std::ranges::sort(found, {}, &WorkerReport::consumer_id);
    return found;
}

} // namespace orizuru
