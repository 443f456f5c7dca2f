// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How each occurrence of a recurring message comes to be pushed once: the hash `recurring` has for
// each name its last occurrence, or when it was first asked for, in milliseconds since 1970.

#include <chrono>
#include <cstddef>
#include <string_view>

namespace orizuru::detail {

// Lua's stack holds some 8000 values.
inline constexpr std::size_t most_recurrences = 1000;

// In one step, unless one message has more: no step holds up Redis for long.
inline constexpr std::size_t most_bytes_recurring = std::size_t{1} << 20;

// How far a clock may be set back for the occurrences that were to wait until it is where it was.
// More than any time zone, which a clock may have been set to by mistake.
inline constexpr std::chrono::hours longest_set_back(24);

// KEYS[1] recurring; ARGV names. Returns Redis' time, then what the hash has for each name, once it
// has something.
inline constexpr std::string_view look_at_recurrences_script = R"lua(#!lua
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local times = {now}
for i, name in ipairs(ARGV) do
    redis.call('HSETNX', KEYS[1], name, now)
    local last = redis.call('HGET', KEYS[1], name)
    times[i + 1] = tonumber(last)
    if not times[i + 1] then
        return redis.error_reply('ERR ' .. name .. ' of ' .. KEYS[1] .. ' is no time')
    end
end
return times
)lua";

// KEYS[1] recurring, [2] source; ARGV[1] a name, then occurrences, the earliest first, each with
// its message behind it. Returns how many it has pushed: those behind the last that anyone has.
inline constexpr std::string_view push_occurrences_script = R"lua(#!lua
local kind = redis.call('TYPE', KEYS[2]).ok
if kind ~= 'list' and kind ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[2] .. ' is a ' .. kind)
end
local last = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local pushed = 0
for i = 2, #ARGV, 2 do
    if tonumber(ARGV[i]) > last then
        redis.call('LPUSH', KEYS[2], ARGV[i + 1])
        redis.call('HSET', KEYS[1], ARGV[1], ARGV[i])
        pushed = pushed + 1
    end
end
return pushed
)lua";

// KEYS[1] recurring; ARGV[1] a name, [2] its last occurrence, when it is that still.
inline constexpr std::string_view begin_anew_script = R"lua(#!lua
if tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0) == tonumber(ARGV[2]) then
    local time = redis.call('TIME')
    redis.call('HSET', KEYS[1], ARGV[1], time[1] * 1000 + math.floor(time[2] / 1000))
end
)lua";

} // namespace orizuru::detail
