// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua by which a script that drops messages releases the locks of the unique jobs among them
// (jobs/unique.hpp), and counts them in their groups (jobs/group.hpp). Only the messages name the
// locks, so these are keys that the script was not
// given: the queue's own are in its slot. One in another slot, or to which the user
// has no right, stays, unless it is the queue's own: without a right to that, nothing is dropped.

namespace orizuru::detail {

/// These Lua functions, which need those of group_ends.hpp and the function refusal:
///
/// note_lock(locks, job, prefix): adds the lock of the job in these bytes to `locks`, if it is held
/// by this job and ends with it (UniqueRelease::on_ack), and its end in its group, if it has one.
/// `prefix`: what the names of the queue's own keys begin with. Returns an error or nothing.
///
/// release(locks): the writing part.
inline constexpr char own_locks_function[] = R"lua(
local widths = {[0xd9] = 1, [0xda] = 2, [0xdb] = 4}
local function lock_of(job, prefix)
    local kind, at, texts = string.byte(job, 1) or 0, 2, {}
    if kind == 0xdc then
        at = 4
    elseif kind == 0xdd then
        at = 6
    elseif kind < 0x90 or kind > 0x9f then
        return
    end
    for field = 1, 10 do
        kind, at = string.byte(job, at) or 0xc1, at + 1
        if field == 2 or field > 7 then
            local width, size = widths[kind], kind - 0xa0
            if width and at + width <= #job + 1 then
                size, at = struct.unpack('>I' .. width, job, at), at + width
            elseif size < 0 or size > 31 then
                return
            end
            if at + size > #job + 1 then return end
            texts[#texts + 1], at = string.sub(job, at, at + size - 1), at + size
        elseif kind >= 0xcc and kind <= 0xd3 then
            at = at + 2 ^ (kind % 4)
        elseif kind > 0x7f and kind < 0xe0 and kind ~= 0xc0 then
            return
        end
    end
    local id, unique_id, queue = texts[1], texts[3], texts[4]
    local of = queue == '' and prefix or prefix_of(queue)
    if unique_id ~= '' and of then
        return of .. 'unique:' .. unique_id, 'ack ' .. id, of == prefix
    end
end
local function note_lock(locks, job, prefix)
    locks.ends = locks.ends or {}
    local refused = note_member(locks.ends, job, false, prefix)
    if refused then return refused end
    local lock, value, own = lock_of(job, prefix)
    if not lock then return end
    refused = refusal({}, {{'GET', lock}, {'DEL', lock}})
    if refused then return own and refused or nil end
    local held = redis.pcall('GET', lock)
    if held == value then
        locks[#locks + 1] = lock
    elseif own and type(held) == 'table' and not string.find(held.err, 'WRONGTYPE') then
        return redis.error_reply('TRYAGAIN ' .. lock .. ' is on its way to another node')
    end
end
local function release(locks)
    for _, lock in ipairs(locks) do redis.call('DEL', lock) end
    end_noted(locks.ends or {})
end
)lua";

/// One more, which needs those:
///
/// note_oldest(locks, list, prefix, most, job_in): does so for the jobs in the list's rightmost
/// elements: up to `most`, or until it has seen 4 MiB. job_in(element) is the job, or nothing.
/// Returns how many it has looked at, and an error or nothing.
inline constexpr char oldest_locks_function[] = R"lua(
local function note_oldest(locks, list, prefix, most, job_in)
    local count, size = 0, 0
    while count < most and size < 4194304 do
        local element = redis.call('LRANGE', list, -1 - count, -1 - count)[1]
        if not element then break end
        count, size = count + 1, size + #element
        local job = job_in(element)
        local refused = job and note_lock(locks, job, prefix)
        if refused then return count, refused end
    end
    return count
end
)lua";

} // namespace orizuru::detail
