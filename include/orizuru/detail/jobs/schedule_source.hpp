// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua of schedule.hpp and unique_lock.hpp.

namespace orizuru::detail {

/// The Lua that schedules messages. KEYS[1] scheduled, [2] the list that they are for,
/// [3] sequence, [4] wake. ARGV[1] 'at' | 'after' | 'each', [2] milliseconds since 1970 | from now
/// | any number, [3..] the messages, in their order, when it is not `payload`: with 'each', before
/// each message its milliseconds since 1970. Returns an error or nothing; needs the
/// function refusal.
inline constexpr char schedule_source[] = R"lua(
local scheduled, list, sequence, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local refused = refusal(
    {{scheduled, 'zset'}, {list, 'list'}, {sequence, 'string'}, {wake, 'list'}},
    {{'TIME'}, {'LPUSH', list, 'x'}, {'ZRANGE', scheduled, '0', '0'},
        {'ZADD', scheduled, '0', 'x'}, {'INCR', sequence}, {'DEL', wake}, {'LPUSH', wake, 'x'}})
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = tonumber(ARGV[2])
if ARGV[1] == 'after' then due = now + due end
local messages = ARGV[3] and {unpack(ARGV, 3)} or {payload}
local each = ARGV[1] == 'each'
if due <= now and not each then
    redis.call('LPUSH', list, unpack(messages))
    return
end
local first = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
local soonest = math.huge
for i = 1, #messages, each and 2 or 1 do
    local message = messages[i]
    if each then due, message = tonumber(message), messages[i + 1] end
    if due <= now then
        redis.call('LPUSH', list, message)
    else
        repeat
            local number = redis.call('INCR', sequence)
        until redis.call('ZADD', scheduled, 'NX', due, struct.pack('>I8', number) .. message) == 1
        soonest = math.min(soonest, due)
    end
end
if soonest < (tonumber(first) or math.huge) then
    redis.call('DEL', wake)
    redis.call('LPUSH', wake, '')
end
)lua";

} // namespace orizuru::detail
