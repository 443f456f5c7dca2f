// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The scripts of those who look after the order of keys (jobs/order/job_order.hpp). They only read,
// move or free, so they run when memory is full (allow-oom).

#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/dead_entries.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

namespace orizuru::detail {

// The upkeep is one worker's at a time, until it is not heard.
//
// KEYS who has it; ARGV own id, for how long (ms). Returns 1 if it is the caller's, else 0.
inline constexpr auto order_turn_script = moving_script(R"lua(
local refused = refusal({{KEYS[1], 'string'}}, {{'GET', KEYS[1]}, {'SET', KEYS[1], 'x', 'PX', '1'}})
if refused then return refused end
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
)lua");

// Begins a burst: reads the jobs behind the one that is out, and leaves a mark, which goes when the
// burst is settled. Where it was not, what killed its worker is one of those jobs: so each of them
// is handled alone. It ends when it has read a mebibyte, and ten jobs at most behind that.
//
// KEYS order, mark; ARGV digits of the job that is out, and how many to read. Returns those jobs,
// each with its digits.
inline constexpr auto begin_burst_text = moving_script(R"lua(
local order, mark, most = KEYS[1], KEYS[2], tonumber(ARGV[2])
local refused = refusal({{order, 'list'}, {mark, 'string'}}, {{'LRANGE', order, '0', '0'},
    {'GET', mark}, {'SET', mark, 'x', 'PX', '1'}, {'DEL', mark}})
if refused then return refused end
if redis.call('LRANGE', order, 0, 0)[1] ~= ARGV[1] then return {} end
local last, left = string.match(redis.call('GET', mark) or '', '^(%x+) (%d+)$')
left = (tonumber(left) or 0) - (last and last ~= ARGV[1] and 1 or 0)
local function set_mark(jobs)
    redis.call('SET', mark, string.format('%s %d', ARGV[1], jobs), 'PX', 86400000)
end
if left > 0 then
    set_mark(left)
    return {}
end
local found, bytes, piece = {}, 0, 1
while #found < most and bytes < 1048576 do
    local some = redis.call('LRANGE', order, #found + 1, #found + math.min(piece, most - #found))
    for _, job in ipairs(some) do
        if bytes < 1048576 then found[#found + 1], bytes = job, bytes + #job end
    end
    if #some < piece then break end
    piece = 10
end
if #found > 0 then
    set_mark(#found)
elseif last then
    redis.call('DEL', mark)
end
return found
)lua");
inline constinit const CachedScript begin_burst_script(begin_burst_text);

// KEYS the dead list; ARGV the first entry to look at, 0 being the newest, and how many. It ends
// when it has read a mebibyte. Returns how many it has looked at, then those that may have a
// ticket, as list_dead_script does.
inline constexpr auto dead_turns_script = reading_script(read_entry_function, R"lua(
local dead, first = KEYS[1], tonumber(ARGV[1])
local refused = refusal({{dead, 'list'}}, {{'LRANGE', dead, '0', '0'}})
if refused then return refused end
local found, count, bytes = {}, 0, 0
while count < tonumber(ARGV[2]) and bytes < 1048576 do
    local entry = redis.call('LRANGE', dead, first + count, first + count)[1]
    if not entry then break end
    count, bytes = count + 1, bytes + #entry
    if string.find(entry, 'orz-key:', 1, true) then found[#found + 1] = {entry, read(entry)} end
end
return {count, found}
)lua");

// KEYS source, order, behind, dead; ARGV digits, the entry, its payload without the ticket. Returns
// 1, or 0 when the entry has gone.
inline constexpr auto end_dead_turn_script =
    moving_script(read_entry_function, advance_function, R"lua(
local source, order, behind, dead = unpack(KEYS)
local next_one, refused = turn(source, order, ARGV[1])
refused = refused or refusal({{dead, 'list'}}, {{'LPOS', dead, 'x'}, {'LSET', dead, '0', 'x'}})
if refused then return refused end
local first, last = read(ARGV[2])
local at = first and redis.call('LPOS', dead, ARGV[2])
if not at then return 0 end
refused = advance(source, order, behind, next_one)
if refused then return refused end
redis.call('LSET', dead, at, '\148\2' .. struct.pack('>BI4', 0xc6, #ARGV[3]) .. ARGV[3] ..
    string.sub(ARGV[2], last + 1))
return 1
)lua");

// KEYS lists of keys. Returns the digits in front of each; '' where there are none.
inline constexpr auto first_digits_script = reading_script(R"lua(
local digits = {}
for i, order in ipairs(KEYS) do
    local refused = refusal({}, {{'TYPE', order}, {'LINDEX', order, '0'}})
    if refused then return refused end
    local first = redis.call('TYPE', order).ok == 'list' and redis.call('LINDEX', order, 0) or ''
    digits[i] = string.find(first, '^%x+$') and #first == 16 and first or ''
end
return digits
)lua");

// KEYS a place; ARGV the first element to look at, and how many. It ends when it has read a
// mebibyte. Returns how many it has looked at, then the digits of all tickets in them.
inline constexpr auto digits_in_place_script = reading_script(R"lua(
local place, first, most = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local refused = refusal({}, {{'TYPE', place}, {'LRANGE', place, '0', '0'},
    {'ZRANGE', place, '0', '0'}})
if refused then return refused end
local kind = redis.call('TYPE', place).ok
local command = ({list = 'LRANGE', zset = 'ZRANGE'})[kind]
-- From the end where less is taken meanwhile: what is due goes first.
local from = kind == 'zset' and {'REV'} or {}
local found, count, bytes, piece = {}, 0, 0, 10
while command and count < most and bytes < 1048576 do
    local some = redis.call(command, place, first + count, first + count + piece - 1, unpack(from))
    for _, element in ipairs(some) do
        bytes = bytes + #element
        local at = string.find(element, 'orz-key:', 1, true)
        while at do
            found[#found + 1] = string.sub(element, at + 8, at + 23)
            at = string.find(element, 'orz-key:', at + 8, true)
        end
    end
    count = count + #some
    if #some < piece then break end
    piece = math.max(10, math.min(200, math.ceil((1048576 - bytes) / (bytes / count + 1))))
end
return {count, found}
)lua");

// Mends what is counted of some keys, where their lists were changed by hand, or by a user without
// the right to count. KEYS Keys::keyed; ARGV the prefix of the keys' lists, the first of the
// counted and the last. Returns how many there were.
inline constexpr auto recount_keys_script = moving_script(R"lua(
local behind, prefix = KEYS[1], ARGV[1]
local refused = refusal({{behind, 'zset'}}, {{'ZRANGE', behind, '0', '0'}, {'TYPE', behind},
    {'LLEN', behind}})
if refused then return refused end
local some = redis.call('ZRANGE', behind, ARGV[2], ARGV[3], 'WITHSCORES')
for i = 1, #some, 2 do
    local key, list = some[i], prefix .. some[i]
    local jobs = redis.call('TYPE', list).ok == 'list' and redis.call('LLEN', list) or 0
    local more = math.max(jobs - 1, 0) - some[i + 1]
    if key ~= '' and more ~= 0 then
        redis.pcall('ZINCRBY', behind, more, key)
        redis.pcall('ZINCRBY', behind, -more, '')
    end
    if key ~= '' and jobs == 0 then redis.pcall('ZREM', behind, key) end
end
return #some / 2
)lua");

// KEYS source, order, behind; ARGV digits. Returns 1 if that turn has ended now, else 0.
inline constexpr auto end_turn_script = moving_script(advance_function, R"lua(
local source, order, behind = unpack(KEYS)
local next_one, refused = turn(source, order, ARGV[1])
refused = refused or advance(source, order, behind, next_one)
if refused then return refused end
return next_one and 1 or 0
)lua");

} // namespace orizuru::detail
