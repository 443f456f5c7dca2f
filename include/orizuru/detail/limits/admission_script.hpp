// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua script by which a process keeps to the limits that a queue has for all of them: it tells
// how many handlers it has, and asks for more.
//
// Slots are the members of a sorted set, "<lease> <owner> <number>", by when they lapse: whatever
// becomes of an answer, the next call says how many there are. Those of a dead process lapse as its
// consumer does: not while Redis refuses writes (write_series.hpp).
//
// Who found no slot waits for an element of a list. Each call that leaves a slot free puts one
// there, except that of a process which will wait for the queue's next message itself: so one
// process is called for each slot, and as long as slots are free somebody watches the queue.

#include <orizuru/detail/limits/rate_script.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/detail/redis/scripts/write_series.hpp>

namespace orizuru::detail {

// KEYS slots, slots:freed, rate, writes, and the lists with messages to fetch
// ARGV owner; lease (ms); how many slots the owner holds, how many it may have had, and how many of
//   these need no renewal; how many there are, 0: any number; apart, late and span of the rate
//   (us), 0: there is none; how many it wants more; "fetch", or "hold" when it has the messages
//   already; and of the rate's permits that were taken last, when the next one was due, and how
//   many go back.
// Returns {granted, when the next permit is due (us)} | {0, ms: the rate says when to ask again} |
//   {-1, 0: there is nothing to fetch} | {-2, ms: no slot is free; one may lapse then}.
// O(slots that come, go and are renewed), and O(slots) when one has lapsed.
inline constexpr auto admission_text = moving_script(series_functions, rate_functions, R"lua(
local slots, freed, rate, writes = unpack(KEYS, 1, 4)
local owner, lease = ARGV[1], tonumber(ARGV[2])
local holding, had, kept, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local apart, late, span = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local wanted, fetches = tonumber(ARGV[10]), ARGV[11] == 'fetch'
local next_one, unused = tonumber(ARGV[12]), tonumber(ARGV[13])
local kinds, commands = {}, {{'TIME'}}
local function also(more) for _, command in ipairs(more) do commands[#commands + 1] = command end end
for i = 5, #KEYS do
    kinds[#kinds + 1] = {KEYS[i], 'list'}
    also({{'LLEN', KEYS[i]}})
end
if most > 0 then
    kinds[#kinds + 1], kinds[#kinds + 2] = {slots, 'zset'}, {freed, 'list'}
    kinds[#kinds + 1] = {writes, 'string'}
    also({{'ZADD', slots, '0', 'x'}, {'ZREM', slots, 'x'}, {'ZCARD', slots},
        {'ZRANGE', slots, '0', '0'}, {'PEXPIRE', slots, '1'}, {'LLEN', freed},
        {'LPUSH', freed, ''}, {'PEXPIRE', freed, '1'}, {'GET', writes}, {'PTTL', writes}})
end
if apart > 0 then
    kinds[#kinds + 1] = {rate, 'string'}
    also({{'GET', rate}, {'SET', rate, 'x', 'PX', '1'}})
end
local refused = refusal(kinds, commands)
if refused then return refused end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function hold(count)
    for i = math.min(kept, count) + 1, math.max(count, had) do
        local slot = string.format('%d %s %d', lease, owner, i)
        if i <= count then
            redis.call('ZADD', slots, string.format('%.0f', now + lease * 1000), slot)
        else
            redis.call('ZREM', slots, slot)
        end
    end
    had, kept = count, count
end
local function drop_lapsed(lasted)
    local all = redis.call('ZRANGE', slots, 0, -1, 'WITHSCORES')
    for i = 1, #all, 2 do
        local ms = tonumber(string.match(all[i], '^(%d+) ')) or 0
        local left = tonumber(all[i + 1]) - now
        if left > ms * 1000 then -- Redis' clock was set back
            redis.call('ZADD', slots, string.format('%.0f', now + ms * 1000), all[i])
        elseif left <= 0 and lasted >= ms then
            redis.call('ZREM', slots, all[i])
        end
    end
end
local function lapse_in(from, to)
    local slot = redis.call('ZRANGE', slots, from, to, 'WITHSCORES')
    return slot[1] and tonumber(slot[2]) - now,
        slot[1] and (tonumber(string.match(slot[1], '^(%d+) ')) or 0) * 1000
end

local waiting = 0
for i = 5, #KEYS do waiting = waiting + redis.call('LLEN', KEYS[i]) end
local free = wanted
if most > 0 then
    hold(holding)
    free = most - redis.call('ZCARD', slots)
    if free < wanted then
        local gap, age, _, passed = series(writes)
        local lasted = gap and age + passed or -1
        local left, first = lapse_in(0, 0)
        local longest, last = lapse_in(-1, -1)
        if left and (left <= 0 and lasted * 1000 >= first or longest > last) then
            drop_lapsed(lasted)
            free = most - redis.call('ZCARD', slots)
        end
    end
end
if unused > 0 and apart > 0 then give_back(rate, now, apart, span, next_one, unused) end
local answer = {0, 0}
local ready = math.min(wanted, free, fetches and waiting or wanted)
if wanted > 0 and fetches and waiting == 0 then
    answer = {-1, 0}
elseif wanted > 0 and free <= 0 then
    local left = lapse_in(0, 0) or 0
    if left <= 0 then left = lease * 1000 / 3 end -- it has, and writes have not lasted yet
    answer = {-2, math.max(math.ceil(left / 1000), 1)}
elseif ready > 0 then
    answer = {ready, 0}
    if apart > 0 then
        local taken, wait, due = take_due(rate, now, apart, late, span, ready, 60000000)
        answer = {taken, taken > 0 and due or wait}
    end
    if most > 0 and answer[1] > 0 then hold(holding + answer[1]) end
end
if most > 0 then
    redis.call('PEXPIRE', slots, math.max(2 * lease, 86400000))
    if answer[1] ~= -1 and most > redis.call('ZCARD', slots) and redis.call('LLEN', freed) == 0 then
        redis.call('LPUSH', freed, '')
        redis.call('PEXPIRE', freed, 86400000)
    end
end
return answer
)lua");
inline constinit const CachedScript admission_script(admission_text);

} // namespace orizuru::detail
