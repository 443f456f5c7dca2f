// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua by which a script counts the ends of jobs in their groups (jobs/group.hpp).
//
// A group is a hash: `job <id>` for each member that has not ended, `open` until its commit, `left`
// (how many of these there are), `jobs` and `failed`, `on_dead`, `expires` (ms), `made` (when, in
// ms), and, where a job follows it, `to` (the list it goes to) and that job in four pieces, `then`
// to `then 4`. Between them come its two times and the numbers of the failed and of all. An end
// counts only if it removes its field: a second one of the same job finds none.

namespace orizuru::detail {

/// The Lua function prefix_of(queue): what the names of its keys begin with (keys.hpp); nothing
/// where there can be no such queue.
inline constexpr char prefix_of_function[] = R"lua(
local function prefix_of(queue)
    if string.sub(queue, 1, 8) == 'orizuru:' then return end
    if not string.find(queue, '[{}]') then return 'orizuru:{' .. queue .. '}:' end
    local tag = string.match(queue, '{[^}]*}')
    return tag and tag ~= '{}' and 'orizuru:' .. tag .. ':' .. queue .. ':' or nil
end
)lua";

/// The Lua functions by which ends count; they need the function refusal:
///
/// note_end(ends, group, field, died), which runs with each ack, so that refusal only says what is
/// missing when something is: adds an end to `ends`, if the group waits for it; that of
/// one that died only if it counts there. Returns an error or nothing: the reading part.
///
/// end_noted(ends): the writing part. The last end of a group brings the job that follows.
inline constexpr char group_ends_function[] = R"lua(
local function note_end(ends, group, field, died)
    local allowed = redis.acl_check_cmd
    local told, all = pcall(function()
        return allowed('HMGET', group, 'x') and allowed('HDEL', group, 'x') and
            allowed('HINCRBY', group, 'x', '1')
    end)
    if not told or not all then
        return refusal({}, {{'HMGET', group, 'x'}, {'HDEL', group, 'x'},
            {'HINCRBY', group, 'x', '1'}})
    end
    local known = redis.pcall('HMGET', group, field, 'left', 'to', 'on_dead', 'failed')
    if known.err then
        local other = string.find(known.err, 'WRONGTYPE', 1, true)
        return other and redis.error_reply('WRONGTYPE ' .. group .. ' is no hash') or known
    end
    if not known[1] or died and known[4] ~= 'count' then return end
    for _, number in ipairs({known[2] or '', known[5] or ''}) do
        if not string.find(number, '^%d+$') then
            return redis.error_reply('ERR ' .. group .. ' has no number of its members')
        end
    end
    local noted = (ends[group] or 0) + 1
    if tonumber(known[2]) <= noted then
        local to = known[3]
        local refused = refusal({}, {{'EXPIRE', group, '1'}})
            or to and refusal({{to, 'list'}}, {{'LPUSH', to, 'x'}, {'TIME'}})
        if refused then return refused end
    end
    ends[group] = noted
    ends[#ends + 1] = {group, field, died}
end
local function finish(group)
    redis.call('EXPIRE', group, 3600)
    -- Its place on the list of those that have not ended. Without the right, who makes a group does it.
    redis.pcall('ZREM', string.sub(group, 1, -34) .. 's', string.sub(group, -32))
    local to, first, second, third, fourth, failed, jobs = unpack(redis.call('HMGET', group, 'to',
        'then', 'then 2', 'then 3', 'then 4', 'failed', 'jobs'))
    if not to then return end
    redis.call('HDEL', group, 'to', 'then', 'then 2', 'then 3', 'then 4')
    local clock = redis.call('TIME')
    local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
    local time = struct.pack('>BI4I4', 0xcf, math.floor(now / 2 ^ 32), now % 2 ^ 32)
    local function text(number) return string.char(0xa0 + #number) .. number end
    redis.call('LPUSH', to,
        first .. time .. time .. second .. text(failed) .. third .. text(jobs) .. fourth)
end
local function end_noted(ends)
    for _, one in ipairs(ends) do
        local group, field, died = unpack(one)
        if redis.call('HDEL', group, field) == 1 then
            if died then redis.call('HINCRBY', group, 'failed', 1) end
            if redis.call('HINCRBY', group, 'left', -1) == 0 then finish(group) end
        end
    end
end
)lua";

/// One more, for scripts that know a job by its bytes alone; it needs those and prefix_of:
///
/// note_member(ends, job, died, here): does as note_end for the job in these bytes, if it is a
/// member. Only the bytes name its group: that is a key which the script was not given. A group
/// that cannot be read stays as it is, unless it has the hash tag of the key `here`.
inline constexpr char group_members_function[] = R"lua(
local function behind(bytes, at)
    local kind = string.byte(bytes, at) or 0xc1
    if kind < 0x80 or kind >= 0xe0 or kind == 0xc0 then return at + 1 end
    if kind >= 0xcc and kind <= 0xd3 then return at + 1 + 2 ^ (kind % 4) end
    local width = ({[0xc4] = 1, [0xc5] = 2, [0xc6] = 4, [0xd9] = 1, [0xda] = 2, [0xdb] = 4,
        [0xde] = 2, [0xdf] = 4})[kind] or 0
    if at + width > #bytes or width == 0 and (kind > 0xbf or kind > 0x8f and kind < 0xa0) then
        return
    end
    local size = width > 0 and struct.unpack('>I' .. width, bytes, at + 1) or kind % 32
    return at + 1 + width + size, at + 1 + width, (kind < 0x90 or kind > 0xdd) and size
end
local function member_of(job)
    if not string.find(job, 'orz-group:', 1, true) or string.byte(job, 1) ~= 0xdc
            or struct.unpack('>I2', job, 2) < 17 then
        return
    end
    local at, id = 4, nil
    for field = 1, 17 do
        local next_at, first, pairs = behind(job, at)
        if pairs then
            if pairs > 64 then return end -- no envelope has more attributes
            next_at = first
            for _ = 1, 2 * pairs do
                local entry = next_at
                next_at, first = behind(job, entry)
                if not first or next_at > #job then return end
            end
        end
        if not next_at or next_at > #job + 1 then return end
        if field == 2 then id = first and string.sub(job, first, next_at - 1) end
        if field == 17 and first and id then
            local digits, queue = string.match(string.sub(job, first, next_at - 1),
                '^orz%-group:(%x+):(.+)$')
            local prefix = digits and #digits == 32 and prefix_of(queue)
            if prefix then return prefix .. 'group:' .. digits, 'job ' .. id end
        end
        at = next_at
    end
end
local function note_member(ends, job, died, here)
    local group, field = member_of(job)
    local refused = group and note_end(ends, group, field, died)
    local function tag_of(key) return string.match(key, '{[^}]*}') or '{' .. key .. '}' end
    if refused and tag_of(group) == tag_of(here) then return refused end
end
)lua";

} // namespace orizuru::detail
