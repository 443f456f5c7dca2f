// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua scripts by which an Inspector cancels jobs, and sees which of them run.

#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/redis/scripts/group_ends.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

namespace orizuru::detail {

// Takes a job that no consumer holds to the dead list, and the next one of its key into the queue.
// A member of a group counts there, if the dead do.
// KEYS where it is, dead; behind these the source, the key's order and the number of those that
// wait, if it has its turn there; or its lock, if it has one. ARGV the element, the reason, its
// payload on the dead list, the digits of its ticket, '' for none, the lock's value. Returns 1, or
// 0 when it is not there; FAR as `take`. It only moves and frees (allow-oom).
inline constexpr auto cancel_script =
    moving_script(take_entry_function, advance_function, dead_entry_function, prefix_of_function,
                  group_ends_function, group_members_function, R"lua(
local place, dead = KEYS[1], KEYS[2]
local element, reason, payload, digits, value = unpack(ARGV)
local source, order, behind, lock, next_one, refused
local ends = {}
if digits ~= '' then
    source, order, behind = unpack(KEYS, 3)
    next_one, refused = turn(source, order, digits)
else
    lock = KEYS[3]
end
refused = refused or refusal({}, {{'TYPE', place}})
if refused then return refused end
local scored = redis.call('TYPE', place).ok == 'zset'
local commands = scored and {{'ZREM', place, 'x'}} or
    {{'LPOS', place, 'x'}, {'LREM', place, '-1', 'x'}, {'LLEN', place}}
commands[#commands + 1], commands[#commands + 2] = {'LPUSH', dead, 'x'}, {'TIME'}
local kinds = {{place, scored and 'zset' or 'list'}, {dead, 'list'}}
if source then kinds[3] = {source, 'list'} end
for _, command in ipairs(lock and {'TYPE', 'GET', 'DEL'} or {}) do
    commands[#commands + 1] = {command, lock}
end
refused = refusal(kinds, commands) or note_member(ends, payload, true, dead)
if refused then return refused end
local taken = scored and redis.call('ZREM', place, element) or take(place, element)
if taken ~= 1 then return taken end
redis.call('LPUSH', dead, dead_entry(payload, reason))
end_noted(ends)
if lock and redis.call('TYPE', lock).ok == 'string' and redis.call('GET', lock) == value then
    redis.call('DEL', lock)
end
if source then advance(source, order, behind, next_one) end
return 1
)lua");

// Requests that a job be cancelled while it runs (stops/cancellations.hpp). KEYS cancelled, the
// report of the worker that holds it; ARGV its id, the reason, for how many ms the request holds,
// how many there may be. Returns 1; 0 when the worker handles its jobs in batches; MANY when there
// are too many. O(requests)
inline constexpr auto request_cancel_script = adding_script(R"lua(
local cancelled, worker, id = KEYS[1], KEYS[2], ARGV[1]
local refused = refusal({{cancelled, 'hash'}, {worker, 'hash'}}, {{'HGETALL', cancelled},
    {'HDEL', cancelled, 'x'}, {'HSET', cancelled, 'x', 'x'}, {'PEXPIRE', cancelled, '1'},
    {'HGET', worker, 'batches'}, {'TIME'}})
if refused then return refused end
if redis.call('HGET', worker, 'batches') == '1' then return 0 end
local time, all, over, others = redis.call('TIME'), redis.call('HGETALL', cancelled), {}, 0
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, #all, 2 do
    if now > (tonumber(string.match(all[i + 1], '^%d+')) or 0) then
        over[#over + 1] = all[i]
    elseif all[i] ~= id then
        others = others + 1
    end
end
if others >= tonumber(ARGV[4]) then
    return redis.error_reply('MANY ' .. ARGV[4] .. ' jobs are being cancelled in ' .. cancelled)
end
for _, other in ipairs(over) do redis.call('HDEL', cancelled, other) end
redis.call('HSET', cancelled, id, string.format('%.0f %s', now + ARGV[3], ARGV[2]))
redis.call('PEXPIRE', cancelled, ARGV[3])
return 1
)lua");

// KEYS consumers; ARGV the prefix of workers' reports, then ids of consumers. Returns for each the
// jobs that it has reported (reported_jobs.hpp), '' for none, or where the user may not read that.
// O(consumers named)
inline constexpr auto running_jobs_script = reading_script(R"lua(
local consumers = KEYS[1]
local refused = refusal({}, {{'HGET', consumers, 'x'}})
if refused then return refused end
local found = {}
for i = 2, #ARGV do
    local known, jobs = pcall(redis.call, 'HGET', ARGV[1] .. ARGV[i], 'jobs')
    found[i - 1] = known and type(jobs) == 'string' and jobs or ''
end
return found
)lua");

} // namespace orizuru::detail
