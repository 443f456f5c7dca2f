// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Pushes each occurrence of a recurring message once: the hash `recurring` has for each name its
// last occurrence, or when it was first asked for, in milliseconds since 1970.

#include <orizuru/detail/redis/scripts/script_parts.hpp>

#include <chrono>
#include <cstddef>

namespace orizuru::detail {

// Lua's stack holds some 8000 values.
inline constexpr std::size_t most_recurrences = 1000;

// In one step, unless one message has more: no step holds up Redis for long.
inline constexpr std::size_t most_bytes_recurring = std::size_t{1} << 20;

// Recurrences wait for a clock that was set back by at most this much to catch up. It exceeds the
// offset of any time zone, to which a clock may have been set by mistake.
inline constexpr std::chrono::hours longest_set_back(24);

// KEYS[1] recurring; ARGV names. Returns Redis' time, then what the hash has for each name, once it
// has something.
inline constexpr auto look_at_recurrences_script = adding_script(R"lua(
local recurring = KEYS[1]
local refused = refusal({{recurring, 'hash'}},
    {{'TIME'}, {'HMGET', recurring, 'x'}, {'HSET', recurring, 'x', '0'}})
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local times, new = {now}, {}
local found = #ARGV > 0 and redis.call('HMGET', recurring, unpack(ARGV)) or {}
for i, last in ipairs(found) do
    times[i + 1] = last and tonumber(last) or now
    if last and not tonumber(last) then
        return redis.error_reply('ERR ' .. ARGV[i] .. ' of ' .. recurring .. ' is no time')
    end
    if not last then
        new[#new + 1], new[#new + 2] = ARGV[i], now
    end
end
if #new > 0 then redis.call('HSET', recurring, unpack(new)) end
return times
)lua");

// KEYS[1] recurring, [2] source; ARGV[1] a name, then occurrences, the earliest first, each with
// its message behind it. Returns how many it has pushed: those behind the last that anyone has.
inline constexpr auto push_occurrences_script = adding_script(R"lua(
local recurring, source, name = KEYS[1], KEYS[2], ARGV[1]
local refused = refusal({{recurring, 'hash'}, {source, 'list'}}, {{'HGET', recurring, 'x'},
    {'HSET', recurring, 'x', '0'}, {'LPUSH', source, 'x'}})
if refused then return refused end
local last = tonumber(redis.call('HGET', recurring, name) or 0)
if not last then
    return redis.error_reply('ERR ' .. name .. ' of ' .. recurring .. ' is no time')
end
local pushed = 0
for i = 2, #ARGV, 2 do
    if tonumber(ARGV[i]) > last then
        redis.call('LPUSH', source, ARGV[i + 1])
        redis.call('HSET', recurring, name, ARGV[i])
        pushed = pushed + 1
    end
end
return pushed
)lua");

// KEYS[1] recurring; ARGV[1] a name, [2] its last occurrence, when it is that still.
inline constexpr auto begin_anew_script = adding_script(R"lua(
local recurring = KEYS[1]
local refused = refusal({{recurring, 'hash'}},
    {{'TIME'}, {'HGET', recurring, 'x'}, {'HSET', recurring, 'x', '0'}})
if refused then return refused end
if tonumber(redis.call('HGET', recurring, ARGV[1]) or 0) == tonumber(ARGV[2]) then
    local time = redis.call('TIME')
    redis.call('HSET', recurring, ARGV[1], time[1] * 1000 + math.floor(time[2] / 1000))
end
)lua");

} // namespace orizuru::detail
