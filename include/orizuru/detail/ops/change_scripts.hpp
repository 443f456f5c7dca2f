// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua scripts by which an Inspector moves and removes messages.
//
// They only move or free, so they run when memory is full (allow-oom).

#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/jobs/fresh_wait.hpp>
#include <orizuru/detail/ops/index_of.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

namespace orizuru::detail {

/// The Lua function payload_of(element, place), as it is served next: nothing for a dead element
/// that is no entry.
inline constexpr char payload_of_function[] = R"lua(
local function payload_of(element, place)
    if place == 'scheduled' then return waits_from_now(string.sub(element, 9), 'early') end
    if place ~= 'dead' then return element end
    local first, last = read(element)
    return first and waits_from_now(string.sub(element, first, last))
end
)lua";

/// The Lua function left_in_front(list, put, leftmost): how many of the last `put` elements are
/// still there, of which `leftmost` was put there first: consumers take it last.
inline constexpr char left_in_front_function[] = R"lua(
local function left_in_front(list, put, leftmost)
    if put == 0 or redis.call('LINDEX', list, -put) == leftmost then return put end
    local found = redis.call('LPOS', list, leftmost, 'RANK', -1, 'MAXLEN', put)
    return found and redis.call('LLEN', list) - found or 0
end
)lua";

/// The Lua functions taking(from, place), the commands of the other one for `refusal`, and
/// take_some(from, place, marker, first, most, elements), which removes those of `elements` that
/// are there, in their order, and returns them. In a list it looks at `most` elements, from the
/// first to the last of `elements`, the first of which was at `first`; at the right end if that is
/// -1. So the cost does not depend on how many there are to remove. When the first and the last
/// have gone, it removes none. `marker` is a text that no list has.
inline constexpr char take_some_function[] = R"lua(
local function taking(from, place)
    if place == 'scheduled' then return {{'ZREM', from, 'x'}} end
    return {{'LLEN', from}, {'LINDEX', from, '0'}, {'LPOS', from, 'x'}, {'LRANGE', from, '0', '0'},
        {'LSET', from, '0', 'x'}, {'LREM', from, '-1', 'x'}}
end
local function take_some(from, place, marker, first, most, elements)
    local taken = {}
    if place == 'scheduled' then
        for _, element in ipairs(elements) do
            if redis.call('ZREM', from, element) == 1 then taken[#taken + 1] = element end
        end
        return taken
    end
    local length, wanted = redis.call('LLEN', from), {}
    if first < 0 then
        first = math.max(length - most, 0)
    else
        local last = first + most - 1
        first = index_of(from, elements[1], first, length)
        if not first then
            last = index_of(from, elements[#elements], last, length)
            if not last then return taken end
            first = math.max(last - most + 1, 0)
        end
    end
    for _, element in ipairs(elements) do wanted[element] = (wanted[element] or 0) + 1 end
    for i, element in ipairs(redis.call('LRANGE', from, first, first + most - 1)) do
        if (wanted[element] or 0) > 0 then
            wanted[element] = wanted[element] - 1
            redis.call('LSET', from, first + i - 1, marker)
            taken[#taken + 1] = element
        end
    end
    if #taken > 0 then
        redis.call('LREM', from, 2 * first < length and #taken or -#taken, marker)
    end
    return taken
end
)lua";

// KEYS where the messages of a place are; ARGV the place; where to go on, 0 being the one that is
// served last, or -1: the last 10,000; how many to read, and one more; the element that was there,
// the one before it, '' for none; how many at the right end were put there, and the leftmost of
// them. Returns where it reads from, or -1 and no element when neither of the two is there any
// more, the length, how many of those put at the right end are left, and the elements as
// `find_messages_script` does. O(20,000 + what is read + how many were put at the right end),
// without these two when nothing has moved.
inline constexpr auto look_back_script =
    reading_script(read_entry_function, index_of_function, left_in_front_function, R"lua(
local key, place, at, count, next_one, before = KEYS[1], ARGV[1], tonumber(ARGV[2]),
    tonumber(ARGV[3]), ARGV[4], ARGV[5]
local put, leftmost = tonumber(ARGV[6]), ARGV[7]
local scored = place == 'scheduled'
local refused = refusal({{key, scored and 'zset' or 'list'}},
    scored and {{'ZCARD', key}, {'ZREVRANK', key, 'x'}, {'ZRANGE', key, '0', '0'}} or
    {{'LLEN', key}, {'LINDEX', key, '0'}, {'LPOS', key, 'x'}, {'LRANGE', key, '0', '0'}})
if refused then return refused end
local length = redis.call(scored and 'ZCARD' or 'LLEN', key)
if not scored then put = left_in_front(key, put, leftmost) end
local function find(element, expected)
    if element == '' then return end
    if scored then return redis.call('ZREVRANK', key, element) or nil end
    return index_of(key, element, expected, length)
end
local first = at
if next_one ~= '' or before ~= '' then
    first = find(next_one, at)
    local known = not first and find(before, at - 1)
    first = first or known and known + 1
    if not first then return {-1, length, put, {}} end
end
if first < 0 then first = math.max(length - math.max(10000, put), 0) end
local last, found = math.min(first + count, length - put - 1), {}
if last < first then return {first, length, put, found} end
local some = scored and redis.call('ZRANGE', key, first, last, 'REV', 'WITHSCORES')
    or redis.call('LRANGE', key, first, last)
for i = 1, #some, scored and 2 or 1 do
    found[#found + 1] = scored and {some[i], some[i + 1]}
        or place == 'dead' and {some[i], read(some[i])} or {some[i]}
end
return {first, length, put, found}
)lua");

// KEYS a list, where it goes; ARGV the element, 'first' or 'last' to be served. Returns 1, or 0
// when it is not there; FAR as `take`.
inline constexpr auto move_element_script = moving_script(take_entry_function, R"lua(
local from, to, element = KEYS[1], KEYS[2], ARGV[1]
local push = ARGV[2] == 'first' and 'RPUSH' or 'LPUSH'
local refused = refusal({{from, 'list'}, {to, 'list'}},
    {{'LPOS', from, 'x'}, {'LREM', from, '-1', 'x'}, {'LLEN', from}, {push, to, 'x'}})
if refused then return refused end
local taken = take(from, element)
if taken ~= 1 then return taken end
redis.call(push, to, element)
return 1
)lua");

// KEYS where the message is, the list to which it goes; ARGV the element, its place; and, if the
// envelope of a unique job does not name its lock's queue, how many bytes of the payload precede
// that name, and the name as msgpack. Returns 1, 0 when it is not there, -1 for a dead element that
// is no entry; FAR as `take`.
inline constexpr auto move_message_script = moving_script(
    read_entry_function, take_entry_function, waits_from_now_function, payload_of_function, R"lua(
local from, to, element, place, before = KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3])
if place == 'dead' and not read(element) then return -1 end
local scored = place == 'scheduled'
local commands = scored and {{'ZREM', from, 'x'}} or
    {{'LPOS', from, 'x'}, {'LREM', from, '-1', 'x'}, {'LLEN', from}}
commands[#commands + 1] = {'LPUSH', to, 'x'}
local refused = refusal({{from, scored and 'zset' or 'list'}, {to, 'list'}}, commands)
if refused then return refused end
local payload = payload_of(element, place)
if before and string.byte(payload, before + 1) == 0xa0 then
    payload = string.sub(payload, 1, before) .. ARGV[4] .. string.sub(payload, before + 2)
end
local taken = scored and redis.call('ZREM', from, element) or take(from, element)
if taken ~= 1 then return taken end
redis.call('LPUSH', to, payload)
return 1
)lua");

// KEYS where the messages are, and the locks of unique jobs among them; ARGV the place, then what
// `take_some` needs: marker, first, most; then for each message its element, which of KEYS is its
// lock (0 = none), and the lock's value. Returns how many were there and are removed.
inline constexpr auto remove_some_script =
    moving_script(index_of_function, take_some_function, R"lua(
local from, place = KEYS[1], ARGV[1]
local commands = taking(from, place)
for i = 2, #KEYS do
    for _, command in ipairs({'TYPE', 'GET', 'DEL'}) do
        commands[#commands + 1] = {command, KEYS[i]}
    end
end
local refused = refusal({{from, place == 'scheduled' and 'zset' or 'list'}}, commands)
if refused then return refused end
local elements, locks = {}, {}
for i = 5, #ARGV, 3 do
    elements[#elements + 1] = ARGV[i]
    locks[ARGV[i]] = {key = KEYS[tonumber(ARGV[i + 1])], value = ARGV[i + 2]}
end
local taken = take_some(from, place, ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), elements)
for _, element in ipairs(taken) do
    local lock = locks[element]
    if lock.key and redis.call('TYPE', lock.key).ok == 'string'
            and redis.call('GET', lock.key) == lock.value then
        redis.call('DEL', lock.key)
    end
end
return #taken
)lua");

// KEYS where the messages are, the source; ARGV the place, what `take_some` needs: marker, first,
// most; how many at the right end were put there before, and the leftmost of them; then the
// elements, the one that is served last first. Those that wait or are suspected are served before
// all others then, the rest behind all that wait, in their order. Returns how many were there, and
// which of the elements was the first of these, counted from 1; 0 for none; and how many were left
// of those put there before.
inline constexpr auto run_some_script =
    moving_script(read_entry_function, waits_from_now_function, payload_of_function,
                  index_of_function, take_some_function, left_in_front_function, R"lua(
local from, source, place = KEYS[1], KEYS[2], ARGV[1]
local commands, waits = taking(from, place), place == 'waiting'
local runs_next = waits or place == 'suspected'
commands[#commands + 1] = {runs_next and 'RPUSH' or 'LPUSH', source, 'x'}
local refused = refusal(
    {{from, place == 'scheduled' and 'zset' or 'list'}, {source, 'list'}}, commands)
if refused then return refused end
local elements, put = {unpack(ARGV, 7)}, tonumber(ARGV[5])
if waits then put = left_in_front(from, put, ARGV[6]) end
local taken = take_some(from, place, ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), elements)
for i = 1, #taken do
    if runs_next then
        redis.call('RPUSH', source, taken[i])
    else
        redis.call('LPUSH', source, payload_of(taken[#taken + 1 - i], place))
    end
end
for i, element in ipairs(elements) do
    if element == taken[1] then return {#taken, i, put} end
end
return {0, 0, put}
)lua");

} // namespace orizuru::detail
