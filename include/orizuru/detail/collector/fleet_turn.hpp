// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets the processes of a fleet share work that one of them does for all: each asks for a turn as
// often as the work is due, and gets one when nobody has had one for so long. Processes may differ
// in how often they want it done. A process that dies in its turn holds up nobody for longer than
// that.

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
/// Returns 1 it is the caller's turn | 0 | NOPERM the user may not run that command
inline const CachedScript& cached_fleet_turn() {
    static const std::string script = moving_script(R"lua(
local turn = KEYS[1]
local commands = {{'PTTL', turn}, {'SET', turn, 'x', 'PX', '1'}}
if ARGV[3] ~= '' then commands[3] = {ARGV[3], '0'} end
local refused = refusal({}, commands)
if refused then return refused end
local left, memory = redis.call('PTTL', turn), tonumber(ARGV[2])
if left > memory - ARGV[1] and left <= memory then return 0 end
redis.call('SET', turn, '', 'PX', ARGV[2])
return 1
)lua");
    static const CachedScript cached{script};
    return cached;
}

struct FleetTurn {
    std::string key;
    std::chrono::milliseconds memory; ///< the same for all who use the key
    std::string_view command = {};    ///< whose right a turn needs

    /// Whether it is the caller's turn: nobody had one for `apart`, or for `memory` if that is
    /// less. A user who may not ask cannot share: each turn is his. Redis: a script, O(1). Throws
    /// ConnectionError, ProtocolError, and ReplyError when Redis cannot serve at present.
    [[nodiscard]] bool take(Connection& connection, std::chrono::milliseconds apart) const;
};

inline bool FleetTurn::take(Connection& connection, std::chrono::milliseconds apart) const {
    try {
        const Reply reply = run_script(connection, key, cached_fleet_turn(), 1, key,
                                       std::min(apart, memory).count(), memory.count(), command);
        if (!is_count(reply) || reply.integer > 1) {
            connection.refuse("EVALSHA");
        }
        return reply.integer == 1;
    } catch (const ReplyError& error) {
        const ReplyClass meaning = classify(error);
        if (meaning == ReplyClass::passing || meaning == ReplyClass::elsewhere) {
            throw;
        }
        return true;
    }
}

} // namespace orizuru::detail
