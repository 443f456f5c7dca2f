// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets the processes of a fleet share work that one of them does for all. Each asks for a turn when
// the work is due, and gets it if no process had one for the interval that it asks with. Intervals
// may differ. A process that dies in its turn delays the others by no more than that.

#include <orizuru/connection.hpp>
#include <orizuru/detail/redis/cached_script.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/run_script.hpp>
#include <orizuru/detail/redis/script_parts.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Records a turn in the key's time to live, by Redis' clock. If that is longer than any turn sets,
/// something else has set it, and it does not count.
///
/// KEYS turn; ARGV how long ago the last turn must be (ms), how long a turn is remembered (ms), a
///   command that the user must have the right to, or ''
/// Returns 0 it is the caller's turn | time until it is due (ms) | NOPERM the user may not run
///   that command
inline constexpr auto fleet_turn_text = moving_script(R"lua(
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
inline constinit const CachedScript fleet_turn_script(fleet_turn_text);

struct FleetTurn {
    std::string key;
    std::chrono::milliseconds memory; ///< must be the same for all users of the key
    std::string_view command = {};    ///< a turn needs the right to it

    /// Takes the turn if no process had one for `apart`, or for `memory` if that is less. Returns 0
    /// then, otherwise the time until it is due. A user without the rights cannot share: always
    /// returns 0. Redis: a script, O(1). Throws ConnectionError, ProtocolError, and ReplyError when
    /// Redis cannot serve at present.
    [[nodiscard]] std::chrono::milliseconds take(Connection& connection,
                                                 std::chrono::milliseconds apart) const;
    /// Lets the next process that asks have the turn. Does nothing for a user without the right to
    /// it. If another process has had a turn since, this gives that turn back, and the work is done
    /// once too often. Redis: DEL. Throws as take().
    void give_back(Connection& connection) const {
        try {
            connection.command(key, "DEL", key);
        } catch (const ReplyError& error) {
            if (is_for_now(error)) {
                throw;
            }
        }
    }
};

inline std::chrono::milliseconds FleetTurn::take(Connection& connection,
                                                 std::chrono::milliseconds apart) const {
    apart = std::min(apart, memory);
    try {
        const Reply reply = run_script(connection, key, fleet_turn_script, 1, key, apart.count(),
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

} // namespace orizuru::detail
