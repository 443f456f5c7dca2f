// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets the processes of a fleet share work that one of them does for all: each asks for a turn when
// the work is due, and gets one when nobody has had one for so long. Processes may differ in how
// often they want it done. A process that dies in its turn holds up nobody for longer than that.

#include <orizuru/connection.hpp>
#include <orizuru/detail/redis/cached_script.hpp>
#include <orizuru/detail/redis/refusal.hpp>
#include <orizuru/detail/redis/reply_class.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/run_script.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Writes down when a turn was had: in how long the key expires, by Redis' clock. A longer time
/// than any turn leaves is somebody else's, and counts for nothing.
///
/// KEYS turn; ARGV how long ago the last turn must be (ms), for how long a turn is remembered (ms),
///   a command that the turn is for, or ''
/// Returns 0 it is the caller's turn | in how long it is due (ms) | NOPERM the user may not run
///   that command
inline const CachedScript& cached_fleet_turn() {
    static const std::string script = moving_script(R"lua(
local turn = KEYS[1]
local commands = {{'PTTL', turn}, {'SET', turn, 'x', 'PX', '1'}}
if ARGV[3] ~= '' then commands[3] = {ARGV[3], '0'} end
local refused = refusal({}, commands)
if refused then return refused end
local apart, memory = tonumber(ARGV[1]), tonumber(ARGV[2])
local left = redis.call('PTTL', turn) - (memory - apart)
if left > 0 and left <= apart then return left end
redis.call('SET', turn, '', 'PX', ARGV[2])
return 0
)lua");
    static const CachedScript cached{script};
    return cached;
}

struct FleetTurn {
    std::string key;
    std::chrono::milliseconds memory; ///< the same for all who use the key
    std::string_view command = {};    ///< whose right a turn needs

    /// Takes the turn if nobody had one for `apart`, or for `memory` if that is less. Returns 0
    /// then, else in how long it is due. A user who may not ask cannot share: each turn is his.
    /// Redis: a script, O(1). Throws ConnectionError, ProtocolError, and ReplyError when Redis
    /// cannot serve at present.
    [[nodiscard]] std::chrono::milliseconds take(Connection& connection,
                                                 std::chrono::milliseconds apart) const;
    /// Lets the next process that asks have the turn. Does nothing for a user without the right to
    /// it. If another process has had a turn since, that one is given back: the work is then done
    /// once more than is due. Redis: DEL. Throws as take().
    void give_back(Connection& connection) const;
};

inline std::chrono::milliseconds FleetTurn::take(Connection& connection,
                                                 std::chrono::milliseconds apart) const {
    apart = std::min(apart, memory);
    try {
        const Reply reply = run_script(connection, key, cached_fleet_turn(), 1, key, apart.count(),
                                       memory.count(), command);
        if (!is_count(reply) || reply.integer > apart.count()) {
            connection.refuse("EVALSHA");
        }
        return std::chrono::milliseconds(reply.integer);
    } catch (const ReplyError& error) {
        if (is_for_now(error)) {
            throw;
        }
        return std::chrono::milliseconds(0);
    }
}

inline void FleetTurn::give_back(Connection& connection) const {
    try {
        connection.command(key, "DEL", key);
    } catch (const ReplyError& error) {
        if (is_for_now(error)) {
            throw;
        }
    }
}

} // namespace orizuru::detail
