// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The steps of the dead list's tools. They read what script_parts.hpp shows, and version 1.
//
// They only move or free, so they run when memory is full (allow-oom).

#include <orizuru/detail/jobs/fresh_wait.hpp>
#include <orizuru/detail/redis/scripts/dead_entries.hpp>
#include <orizuru/detail/redis/scripts/group_ends.hpp>
#include <orizuru/detail/redis/scripts/own_locks.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

namespace orizuru::detail {

// KEYS[1] dead; ARGV[1], [2] the first and last index. Returns each entry with what `read` says.
inline constexpr auto list_dead_script = reading_script(read_entry_function, R"lua(
local dead = KEYS[1]
local refused = refusal({{dead, 'list'}}, {{'LRANGE', dead, '0', '0'}})
if refused then return refused end
local found = {}
for i, entry in ipairs(redis.call('LRANGE', dead, ARGV[1], ARGV[2])) do
    found[i] = {entry, read(entry)}
end
return found
)lua");

/// The Lua function take(list, entry): removes the entry; returns 1, 0 when it is not there, or an
/// error when it would have to search the middle of a long list, which takes a fifth of a second
/// for a million elements.
inline constexpr char take_entry_function[] = R"lua(
local function take(list, entry)
    for _, rank in ipairs({-1, 1}) do
        if redis.call('LPOS', list, entry, 'RANK', rank, 'MAXLEN', 10000) then
            return redis.call('LREM', list, rank, entry)
        end
    end
    if redis.call('LLEN', list) <= 20000 then return 0 end
    return redis.error_reply('FAR it is not among the 10000 elements at either end of ' .. list)
end
)lua";

// KEYS[1] dead, [2] source; ARGV[1] the entry. Returns 1, 0 when it is not there, -1 for what is no
// entry; FAR as `take`.
inline constexpr auto redrive_script =
    moving_script(read_entry_function, take_entry_function, waits_from_now_function, R"lua(
local dead, source, entry = KEYS[1], KEYS[2], ARGV[1]
local first, last = read(entry)
if not first then return -1 end
local refused = refusal({{dead, 'list'}, {source, 'list'}},
    {{'LPOS', dead, 'x'}, {'LREM', dead, '-1', 'x'}, {'LLEN', dead}, {'LPUSH', source, 'x'}})
if refused then return refused end
local taken = take(dead, entry)
if taken ~= 1 then return taken end
redis.call('LPUSH', source, waits_from_now(string.sub(entry, first, last)))
return 1
)lua");

// KEYS[1] dead, [2] the job's lock, if it has one; ARGV[1] the entry, [2] the lock's value. Returns
// 1, or 0 when the entry is not there: then the lock stays, too; FAR as `take`.
inline constexpr auto remove_dead_script = moving_script(take_entry_function, R"lua(
local dead, lock = KEYS[1], KEYS[2]
local commands = {{'LPOS', dead, 'x'}, {'LREM', dead, '-1', 'x'}, {'LLEN', dead}}
if lock then commands[4], commands[5], commands[6] = {'TYPE', lock}, {'GET', lock}, {'DEL', lock} end
local refused = refusal({{dead, 'list'}}, commands)
if refused then return refused end
local taken = take(dead, ARGV[1])
if taken ~= 1 then return taken end
if lock and redis.call('TYPE', lock).ok == 'string' and redis.call('GET', lock) == ARGV[2] then
    redis.call('DEL', lock)
end
return 1
)lua");

// Takes entries out, the oldest first. KEYS[1] dead, [2] where their payloads go, if anywhere; else
// the locks of unique jobs among them go, too. ARGV[1] how many entries it looks at, [2] how many
// at the right end it has passed before: they are no entries and stay; [3] the least age in
// milliseconds, if there is one: a younger entry ends the step. It stops after 4 MiB. Returns how
// many it has taken and how many it has passed, and whether there may be more: 1 or 0.
inline constexpr auto take_dead_script =
    moving_script(read_entry_function, prefix_of_function, group_ends_function,
                  group_members_function, own_locks_function, waits_from_now_function, R"lua(
local dead, source = KEYS[1], KEYS[2]
local kinds = {{dead, 'list'}}
local commands = {{'LINDEX', dead, '0'}, {'LREM', dead, '-1', 'x'}}
if source then
    kinds[2], commands[3] = {source, 'list'}, {'LPUSH', source, 'x'}
end
if ARGV[3] then commands[#commands + 1] = {'TIME'} end
local refused = refusal(kinds, commands)
if refused then return refused end
local clock = ARGV[3] and redis.call('TIME')
local before = clock and clock[1] * 1000 + math.floor(clock[2] / 1000) - ARGV[3]
local passed_before, passed, size = tonumber(ARGV[2]), 0, 0
local entries, jobs, locks, more = {}, {}, {}, 1
while #entries + passed < tonumber(ARGV[1]) and size < 4194304 do
    local entry = redis.call('LINDEX', dead, -1 - passed_before - passed - #entries)
    local first, last, time, _
    if entry then first, last, _, _, time = read(entry) end
    if not entry or before and first and time > before then
        more = 0
        break
    end
    size = size + #entry
    if first then
        local job = string.sub(entry, first, last)
        refused = not source and note_lock(locks, job, string.sub(dead, 1, -5))
        if refused then return refused end
        entries[#entries + 1], jobs[#jobs + 1] = entry, job
    else
        passed = passed + 1
    end
end
for i, entry in ipairs(entries) do
    redis.call('LREM', dead, -1, entry)
    if source then redis.call('LPUSH', source, waits_from_now(jobs[i])) end
end
release(locks)
return {#entries, passed, more}
)lua");

// Removes the oldest elements, and the locks of the unique jobs among them. KEYS[1] dead; ARGV[1]
// the most that stay, [2] the most that go. Returns how many have gone, and how many more are to
// go: note_oldest bounds what a step looks at.
inline constexpr auto cut_dead_script = moving_script(
    read_entry_function, prefix_of_function, group_ends_function, group_members_function,
    own_locks_function, oldest_locks_function, dead_job_function, R"lua(
local dead, locks = KEYS[1], {}
local refused = refusal({{dead, 'list'}},
    {{'LLEN', dead}, {'LRANGE', dead, '0', '0'}, {'LTRIM', dead, '0', '0'}})
if refused then return refused end
local over = redis.call('LLEN', dead) - ARGV[1]
if over <= 0 then return {0, 0} end
local most = math.min(over, tonumber(ARGV[2]))
local gone
gone, refused = note_oldest(locks, dead, string.sub(dead, 1, -5), most, dead_job)
if refused then return refused end
redis.call('LTRIM', dead, 0, -1 - gone)
release(locks)
return {gone, over - gone}
)lua");

} // namespace orizuru::detail
