// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Puts requests of running and failed jobs to Redis, for all queues: writes a job's progress,
// extends its lock, reads how often it was blamed for the death of a worker, and what else the jobs
// ask for. They share one connection, which the first of them opens, and take turns.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/jobs/progress_scripts.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/queue_connections.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/recovery_counts.hpp>
#include <orizuru/detail/worker/turn.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Any thread may call what is not marked. A call waits for at most connect_timeout until its turn
/// has come, connect_timeout to connect when that is needed, and command_timeout. Throws
/// ConnectionError when its turn does not come in time, else as Connection does.
class JobQueries {
  public:
    /// Does not connect yet. Throws std::system_error when the process can have no more
    /// descriptors.
    explicit JobQueries(const Endpoint& endpoint) : m_connections(m_cutoff.guard(endpoint)) {}

    /// From now on each call that would wait for Redis throws ConnectionError.
    void cut_off() const noexcept { m_cutoff.signal(); }

    /// As Progress::set.
    void set_progress(const Keys& keys, std::string_view job_id, double fraction,
                      std::string_view note) {
        in_turn(keys, [&](Connection& connection) {
            write_progress(connection, keys, job_id, fraction, note, std::chrono::hours(24));
        });
    }

    /// As extend_unique (unique.hpp).
    bool extend_lock(const Keys& keys, const JobLock& lock, std::chrono::milliseconds ttl) {
        bool extended = false;
        in_turn(keys, [&](Connection& connection) {
            extended = detail::extend_lock(connection, keys, lock, ttl);
        });
        return extended;
    }

    /// Returns how often the job was blamed for the death of a worker. Redis: HGET, O(1); one more
    /// where it was.
    [[nodiscard]] JobRecoveries recoveries(const Keys& keys, std::string_view job_id) {
        JobRecoveries recoveries;
        in_turn(keys, [&](Connection& connection) {
            const std::string key = keys.recoveries();
            const auto count = [&](const std::string& field) -> std::uint64_t {
                const Reply reply = connection.command(key, "HGET", key, field);
                const auto number = whole_number(reply.text);
                if (!reply.is(Reply::Type::nil) && !(reply.is(Reply::Type::string) && number)) {
                    refuse(connection, "HGET");
                }
                return number.value_or(0);
            };
            recoveries.all = count(recovery_field(job_id));
            if (recoveries.all > 0) {
                recoveries.charged = count(charged_field(job_id));
            }
        });
        return recoveries;
    }

    /// Does the same for several jobs. Redis: HMGET, O(n).
    [[nodiscard]] std::vector<JobRecoveries> recoveries(const Keys& keys,
                                                        std::span<const std::string_view> job_ids) {
        std::vector<std::string> fields;
        for (const std::string_view id : job_ids) {
            fields.push_back(recovery_field(id));
            fields.push_back(charged_field(id));
        }
        std::vector<JobRecoveries> all(job_ids.size());
        in_turn(keys, [&](Connection& connection) {
            const std::string key = keys.recoveries();
            const Reply reply = connection.command(key, "HMGET", key, fields);
            const auto is_number = [](const Reply& count) {
                return count.is(Reply::Type::nil) ||
                       (count.is(Reply::Type::string) && whole_number(count.text));
            };
            if (!reply.is(Reply::Type::array) || reply.elements.size() != fields.size() ||
                !std::ranges::all_of(reply.elements, is_number)) {
                refuse(connection, "HMGET");
            }
            for (std::size_t i = 0; i < all.size(); ++i) {
                all[i].all = whole_number(reply.elements[2 * i].text).value_or(0);
                all[i].charged = whole_number(reply.elements[2 * i + 1].text).value_or(0);
            }
        });
        return all;
    }

    /// Pushes a message to any queue. Redis: LPUSH, O(1).
    void push(const Keys& keys, std::string_view message) {
        in_turn(keys, std::chrono::milliseconds(100), [&](Connection& connection) {
            const std::string& queue = keys.source();
            if (!is_count(connection.command(queue, "LPUSH", queue, message))) {
                refuse(connection, "LPUSH");
            }
        });
    }

    /// Calls `action` with the connection, in a turn that comes within `patience`.
    template <class Action>
    void in_turn(const Keys& keys, std::chrono::milliseconds patience, Action action) {
        const Endpoint& endpoint = m_connections.endpoint();
        const bool done = m_turn.take(patience, [&] { action(*m_connections.of(keys)); });
        if (!done) {
            throw ConnectionError(endpoint.address() + ": '" + keys.source() +
                                  "': what other jobs ask for takes too long");
        }
    }

  private:
    template <class Action>
    void in_turn(const Keys& keys, Action action) {
        in_turn(keys, m_connections.endpoint().connect_timeout(), std::move(action));
    }

    Cutoff m_cutoff;
    Turn m_turn;
    QueueConnections m_connections; ///< for the thread whose turn it is
};

} // namespace orizuru::detail
