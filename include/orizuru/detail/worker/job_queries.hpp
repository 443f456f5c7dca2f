// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Puts requests of running and failed jobs to Redis, for all queues: writes a job's progress,
// extends its lock, and reads how often it was blamed for the death of a worker. The jobs share one
// connection, which the first of them opens, and take turns.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/turn.hpp>
#include <orizuru/detail/jobs/progress_scripts.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/queue_connections.hpp>
#include <orizuru/detail/redis/scripts/recovery_counts.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

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

  private:
    template <class Action>
    void in_turn(const Keys& keys, Action action) {
        const Endpoint& endpoint = m_connections.endpoint();
        const bool done =
            m_turn.take(endpoint.connect_timeout(), [&] { action(*m_connections.of(keys)); });
        if (!done) {
            throw ConnectionError(endpoint.address() + ": '" + keys.source() +
                                  "': what other jobs ask for takes too long");
        }
    }

    Cutoff m_cutoff;
    Turn m_turn;
    QueueConnections m_connections; ///< for the thread whose turn it is
};

} // namespace orizuru::detail
