// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua scripts of an Inspector. They find consumers' lists and heartbeats as they go, and check
// their rights by a key that is known.

#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/ops/index_of.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

#include <string_view>

namespace orizuru::detail {

/// The Lua function held_list(id): the length of a consumer's processing list without its header,
/// and the list's key; 0 for a fence.
inline constexpr char held_list_function[] = R"lua(
local function held_list(prefix, id)
    local list = prefix .. id
    local long = redis.call('TYPE', list).ok == 'list' and redis.call('LLEN', list) or 1
    return long - 1, list
end
)lua";

// KEYS consumers; ARGV the prefixes of heartbeats and of processing lists. Returns {id, the
// heartbeat's PTTL, how many it holds, its header} for each. O(consumers)
inline constexpr auto consumer_states_script = reading_script(held_list_function, R"lua(
local consumers, heartbeat, processing = KEYS[1], ARGV[1], ARGV[2]
local refused = refusal({{consumers, 'set'}}, {{'SMEMBERS', consumers}, {'PTTL', consumers},
    {'TYPE', consumers}, {'LLEN', consumers}, {'LINDEX', consumers, '-1'}})
if refused then return refused end
local found = {}
for i, id in ipairs(redis.call('SMEMBERS', consumers)) do
    local held, list = held_list(processing, id)
    local known = redis.call('TYPE', list).ok == 'list'
    found[i] = {id, redis.call('PTTL', heartbeat .. id), held,
        known and redis.call('LINDEX', list, -1) or ''}
end
return found
)lua");

// KEYS consumers; ARGV the prefix of processing lists, the first and how many. Returns {id,
// element} for each, a consumer's oldest first. O(consumers + what is read)
inline constexpr auto held_messages_script = reading_script(held_list_function, R"lua(
local consumers, processing = KEYS[1], ARGV[1]
local pass, left = tonumber(ARGV[2]), tonumber(ARGV[3])
local refused = refusal({{consumers, 'set'}}, {{'SMEMBERS', consumers},
    {'TYPE', consumers}, {'LLEN', consumers}, {'LRANGE', consumers, '0', '0'}})
if refused then return refused end
local ids, found = redis.call('SMEMBERS', consumers), {}
table.sort(ids)
for _, id in ipairs(ids) do
    local held, list = held_list(processing, id)
    if left > 0 and held > pass then
        local last = -2 - pass
        local some = redis.call('LRANGE', list, last - left + 1, last)
        for i = #some, 1, -1 do found[#found + 1] = {id, some[i]} end
        left = left - #some
    end
    pass = math.max(pass - held, 0)
end
return found
)lua");

/// The Lua function next_piece(looked_at, bytes, most): how many elements to read together, when so
/// many that have so many bytes are read, and about a mebibyte is wanted; 0 for enough.
inline constexpr char next_piece_function[] = R"lua(
local function next_piece(looked_at, bytes, most)
    local wanted = 1048576 - bytes
    if wanted <= 0 then return 0 end
    local piece = looked_at > 0 and math.ceil(wanted / (bytes / looked_at + 1)) or 10
    return math.min(piece, most - looked_at, 100)
end
-- An envelope's id ends within 600 bytes, and few bytes precede the envelope. A ticket may be anywhere.
local function may_be(element, id)
    local part = string.sub(id, 1, 8) == 'orz-key:' and element or string.sub(element, 1, 700)
    return string.find(part, id, 1, true)
end
)lua";

// KEYS groups of a queue; ARGV the prefix of their keys, the first and the last of them, or '', ''
// and the id of one. Returns {id, PTTL, open, left, jobs, failed, made, to} for each that is there.
// O(log groups + what is read)
inline constexpr auto group_states_script = reading_script(R"lua(
local groups, prefix, first, last, id = KEYS[1], unpack(ARGV)
local refused = refusal({{groups, 'zset'}}, {{'ZRANGE', groups, '0', '0'}, {'TYPE', groups},
    {'PTTL', groups}, {'HMGET', groups, 'x'}})
if refused then return refused end
local found = {}
for _, one in ipairs(id and {id} or redis.call('ZRANGE', groups, first, last)) do
    local group = prefix .. one
    if redis.call('TYPE', group).ok == 'hash' then
        found[#found + 1] = {one, redis.call('PTTL', group), unpack(redis.call('HMGET', group,
            'open', 'left', 'jobs', 'failed', 'made', 'to'))}
    end
end
return found
)lua");

// ARGV how many bytes; then lists that a SCAN of this node has found, of any slots. Returns for
// each list the first bytes of its next message, '' if it has gone or the user may not read it.
// O(lists)
inline constexpr std::string_view next_starts_script() {
    return R"lua(#!lua flags=no-writes,allow-cross-slot-keys
local starts = {}
for i = 2, #ARGV do
    local known, allowed = pcall(redis.acl_check_cmd, 'LINDEX', ARGV[i], '-1')
    local read, element = false, false
    if known and allowed then read, element = pcall(redis.call, 'LINDEX', ARGV[i], -1) end
    starts[i - 1] = read and element and string.sub(element, 1, ARGV[1]) or ''
end
return starts
)lua";
}

// KEYS where the messages of a place are; ARGV the first to look at, the newest being 0, those due
// last of scheduled ones; how many at most; a job's id, or its ticket; the place. It ends when it
// has read a mebibyte. Returns how many it has looked at, whether these were the last (0 or 1), and
// those that may be the job: {element}, with its score if it is scheduled, with what `read` says if
// it is dead. O(first + what is looked at)
inline constexpr auto find_messages_script =
    reading_script(read_entry_function, next_piece_function, R"lua(
local key, first, most, id, place = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local scored = place == 'scheduled'
local refused = refusal({{key, scored and 'zset' or 'list'}},
    {{scored and 'ZRANGE' or 'LRANGE', key, '0', '0'}})
if refused then return refused end
local width, looked_at, bytes, found = scored and 2 or 1, 0, 0, {}
local piece = next_piece(looked_at, bytes, most)
while piece > 0 do
    local last = first + piece - 1
    local some = scored and redis.call('ZRANGE', key, first, last, 'REV', 'WITHSCORES')
        or redis.call('LRANGE', key, first, last)
    for i = 1, #some, width do
        local element = some[i]
        bytes = bytes + #element
        if may_be(element, id) then
            found[#found + 1] = scored and {element, some[i + 1]}
                or place == 'dead' and {element, read(element)} or {element}
        end
    end
    looked_at = looked_at + #some / width
    if #some / width < piece then return {looked_at, 1, found} end
    first = first + piece
    piece = next_piece(looked_at, bytes, most)
end
return {looked_at, 0, found}
)lua");

// KEYS consumers; ARGV the prefix of processing lists, a job's id, how many to look at; how many of
// the first consumer's messages were looked at before, the oldest first, and the last of these;
// then consumers' ids. It ends when it has read a mebibyte. Returns how many consumers it is done
// with; how many of the next one's messages it has looked at, the last of them, and how many that
// one holds; how many it has looked at in all; 1 when it has begun the first consumer again,
// because it did not find its place, else 0; and {id, element} for those that may be the job.
// O(consumers + what is looked at)
inline constexpr auto find_held_script =
    reading_script(held_list_function, index_of_function, next_piece_function, R"lua(
local consumers, processing, job, most = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local refused = refusal({{consumers, 'set'}}, {{'TYPE', consumers}, {'LLEN', consumers},
    {'LRANGE', consumers, '0', '0'}, {'LINDEX', consumers, '0'}, {'LPOS', consumers, 'x'}})
if refused then return refused end
local looked_at, bytes, again, found = 0, 0, 0, {}
for i = 6, #ARGV do
    local id = ARGV[i]
    local held, list = held_list(processing, id)
    local at, last = i == 6 and tonumber(ARGV[4]) or 0, ARGV[5]
    if at > 0 then
        local index = held > 0 and index_of(list, last, math.max(held - at, 0), held + 1)
        at, again = index and held - index or 0, index and 0 or 1
    end
    while at < held do
        local piece = math.min(next_piece(looked_at, bytes, most), held - at)
        if piece <= 0 then return {i - 6, at, last, held, looked_at, again, found} end
        local some = redis.call('LRANGE', list, held - at - piece, held - at - 1)
        for k = #some, 1, -1 do
            bytes = bytes + #some[k]
            if may_be(some[k], job) then found[#found + 1] = {id, some[k]} end
        end
        looked_at, at, last = looked_at + piece, at + piece, some[1]
    end
end
return {#ARGV - 5, 0, '', 0, looked_at, again, found}
)lua");

} // namespace orizuru::detail
