// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua scripts: each is one atomic step on a queue's lists. The header, the rightmost element of
// a processing list, is `orz:<nonce>:<v>`; v counts the settlement scripts that have run. A script
// names the header it expects and writes the next one, so each runs in the order sent and at most
// once. A string in place of the list is a fence: the consumer that finds it has lost the list.
//
// All scripts check before their first write, or that write is the check. They only move or free,
// so they run when memory is full (allow-oom).

#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/group_ends.hpp>
#include <orizuru/detail/redis/scripts/recovery_counts.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/detail/redis/scripts/write_series.hpp>
#include <orizuru/script.hpp>

#include <string_view>

namespace orizuru::detail {

/// Registers a consumer. Checks rights first: a user who may fetch but not settle must not start.
///
/// KEYS heartbeat, processing, consumers, source, unack, dead; ARGV id, lease (ms), header
/// Returns 1 registered | 0 fenced | NOPERM. Repeating it with the same id changes nothing.
inline std::string_view start_script() {
    static constexpr auto script = moving_script(R"lua(
local heartbeat, processing, consumers, source, unack, dead = unpack(KEYS)
local refused = refusal({}, {
    {'SET', heartbeat, '1', 'PX', '1'}, {'DEL', heartbeat}, {'TYPE', heartbeat},
    {'SADD', consumers, 'x'}, {'SREM', consumers, 'x'}, {'TYPE', consumers},
    {'LINDEX', processing, '0'}, {'LLEN', processing}, {'LSET', processing, '0', 'x'},
    {'LREM', processing, '0', 'x'}, {'LTRIM', processing, '0', '0'},
    {'LRANGE', processing, '0', '0'}, {'RPUSH', processing, 'x'}, {'LPUSH', processing, 'x'},
    {'RPOP', processing}, {'SET', processing, 'x', 'PX', '1'}, {'GET', processing},
    {'EXISTS', processing}, {'TYPE', processing}, {'RENAME', processing, processing .. ':'},
    {'BLMOVE', source, processing, 'RIGHT', 'LEFT', '1'}, {'RPOP', source, '1'},
    {'RPUSH', source, 'x'}, {'TYPE', source}, {'LPUSH', unack, 'x'}, {'TYPE', unack},
    {'LPUSH', dead, 'x'}, {'TYPE', dead}, {'TIME'}, {'EVAL', '', '0'},
    {'EVALSHA', string.rep('0', 40), '0'}})
if refused then return refused end
local kind = redis.call('TYPE', processing).ok
if kind == 'string' then return 0 end
refused = refusal({{processing, 'list'}, {heartbeat, 'string'}, {consumers, 'set'}}, {})
if refused then return refused end
redis.call('SET', heartbeat, '1', 'PX', ARGV[2])
redis.call('SADD', consumers, ARGV[1])
if kind == 'none' then redis.call('RPUSH', processing, ARGV[3]) end
return 1
)lua");
    return script;
}

/// Renews the lease, and goes on with the series of writes. A user without the rights to that, or a
/// key of another type in its place, only makes collectors slower.
///
/// Says that suspects will be asked for, if some wait and this consumer asks for them. Their keys
/// are no KEYS: those may be missing, and a node that gives the slot away would refuse the beat.
///
/// KEYS heartbeat, processing, consumers, writes
/// ARGV id, lease (ms), suspects, suspects:asked or empty: it does not ask, for how long (ms)
/// Returns 1 | 3 the same, and suspects wait | 0 fenced | 2 the list is gone (Redis was emptied or
///   rewound).
inline std::string_view beat_script() {
    static constexpr auto script = moving_script(series_functions, R"lua(
local heartbeat, processing, consumers, writes = unpack(KEYS)
local refused = refusal({{heartbeat, 'string'}}, {{'TYPE', processing},
    {'SET', heartbeat, '1', 'PX', '1'}, {'SADD', consumers, 'x'}})
if refused then return refused end
local kind = redis.call('TYPE', processing).ok
if kind == 'string' then return 0 end
redis.call('SADD', consumers, ARGV[1]) -- first: it fails where the key is no set
redis.call('SET', heartbeat, '1', 'PX', ARGV[2])
if not no_series(writes) then
    set_series(writes, longer_series(writes, gap_of(ARGV[2]), true))
end
if kind == 'none' then return 2 end
if redis.pcall('EXISTS', ARGV[3]) ~= 1 then return 1 end
if ARGV[4] ~= '' then redis.pcall('SET', ARGV[4], '', 'PX', ARGV[5]) end
return 3
)lua");
    return script;
}

/// Removes settled messages by position and fetches others.
///
/// Checks only the rights without which it would lose messages that it has taken from a list. START
/// has checked the others. If the user loses one of those later, the script stops half-way. It has
/// then either changed nothing, or left the next header somewhere in the list; that tells ADOPT and
/// REAP that its messages are settled.
///
/// Between its RPOP and its RPUSH of the processing list nothing can fail: it is a list and longer
/// than all that is popped, the rights are checked, allow-oom holds for each command, and Redis
/// kills no script that has written.
///
/// KEYS processing, source if it fetches: else it runs while the source's slot migrates
/// ARGV expected header, next header, -1 - k, n, least length, then indices or runs: removes the k
///   oldest and others, and fetches up to n from the source. The others are at the indices (from
///   the right, before anything is removed; the marker is the next header), or the runs say by
///   turns how many stay and how many go. Arguments that are not needed are left out at the end: n
///   without a fetch, the least length when it is not greater than k and there are no others. LSET
///   then fails when the list is shorter, and nothing is written.
/// Returns the fetched, oldest first | STALE | SRC (settled, source no list) | NOPERM | WRONGTYPE
/// O(k + n + greatest index), and bytes of fetched messages and, with runs, of those that stay.
inline constexpr std::string_view settle_text = R"lua(#!lua flags=allow-oom
local p = KEYS[1]
if redis.call('LINDEX', p, -1) ~= ARGV[1] then return redis.error_reply('STALE header') end
if ARGV[5] and redis.call('LLEN', p) - 1 < tonumber(ARGV[5]) then
    return redis.error_reply('STALE length')
end
local source = KEYS[2]
if source and not redis.acl_check_cmd('LPUSH', p, 'x') then
    return redis.error_reply('NOPERM this user may not run LPUSH on ' .. p)
end
if ARGV[6] and tonumber(ARGV[6]) > 0 then
    for _, command in ipairs({{'LTRIM', p, '0', '0'}, {'RPOP', p, '1'}, {'RPUSH', p, 'x'}}) do
        if not redis.acl_check_cmd(unpack(command)) then
            return redis.error_reply('NOPERM this user may not run ' .. command[1] .. ' on ' .. p)
        end
    end
    redis.call('LTRIM', p, 0, ARGV[3] - 1)
    local kept, back = {ARGV[2]}, {}
    for i = 6, #ARGV, 2 do
        for _, message in ipairs(redis.call('RPOP', p, ARGV[i])) do kept[#kept + 1] = message end
        redis.call('LTRIM', p, 0, -1 - ARGV[i + 1])
    end
    for i = #kept, 1, -1 do back[#back + 1] = kept[i] end
    for i = 1, #back, 1000 do
        redis.call('RPUSH', p, unpack(back, i, math.min(i + 999, #back)))
    end
else
    if ARGV[6] then
        for i = 6, #ARGV do redis.call('LSET', p, ARGV[i], ARGV[2]) end
        redis.call('LREM', p, 5 - #ARGV, ARGV[2])
    end
    local set = redis.pcall('LSET', p, ARGV[3], ARGV[2])
    if set.err then
        return redis.error_reply(set.err == 'ERR index out of range' and 'STALE length' or set.err)
    end
    if ARGV[3] ~= '-1' then redis.call('LTRIM', p, 0, ARGV[3]) end
end
if not source then return {} end
local fetched = redis.pcall('RPOP', source, ARGV[4])
if not fetched then return {} end
if fetched.err then return redis.error_reply('SRC ' .. fetched.err) end
redis.call('LPUSH', p, unpack(fetched))
return fetched
)lua";
inline constinit const CachedScript settle_script(settle_text);

/// Fetches the suspect that has waited longest, if the process may hold it beside the others that
/// it holds: with `most` of TrialLimits, by how often the one of them that was blamed most often
/// was. Says that suspects are asked for, for the time given.
///
/// KEYS processing, suspects, recoveries, suspects:asked
/// ARGV expected header, next header, least length, suspects held, level of the one blamed most
///   often, most of level 1, 2, 3, time (ms)
/// Returns {} | {payload, field of its recoveries, their number} | STALE | REFUSED (missing right,
///   another type) | WRONGTYPE
inline constexpr auto try_suspect_text = moving_script(recovery_field_function, R"lua(
local p, suspects, recoveries, asked = unpack(KEYS)
if redis.call('LINDEX', p, -1) ~= ARGV[1] then return redis.error_reply('STALE header') end
if redis.call('LLEN', p) - 1 < tonumber(ARGV[3]) then return redis.error_reply('STALE length') end
local refused = refusal({{suspects, 'list'}, {recoveries, 'hash'}, {asked, 'string'}}, {
    {'LINDEX', suspects, '-1'}, {'LMOVE', suspects, p, 'RIGHT', 'LEFT'}, {'LSET', p, '0', 'x'},
    {'HGET', recoveries, 'x'}, {'SET', asked, '', 'PX', '1'}})
if refused then return redis.error_reply('REFUSED ' .. refused.err) end
local suspect, field, count, fits = redis.call('LINDEX', suspects, -1)
if suspect then
    field = recovery_field(suspect)
    count = math.max(1, tonumber(redis.call('HGET', recoveries, field) or 1) or 1)
    local level = math.min(3, math.max(count, tonumber(ARGV[5])))
    fits = tonumber(ARGV[4]) < tonumber(ARGV[5 + math.floor(level)])
end
redis.call('SET', asked, '', 'PX', ARGV[9])
redis.call('LSET', p, -1, ARGV[2])
if not fits then return {} end
redis.call('LMOVE', suspects, p, 'RIGHT', 'LEFT')
return {suspect, field, string.format('%d', count)}
)lua");
inline constinit const CachedScript try_suspect_script(try_suspect_text);

/// Requeues all messages but the `held` oldest at the source's serving end. With nothing held, the
/// same step sets the fence and leaves the registry.
///
/// KEYS processing, source, heartbeat, consumers
/// ARGV expected header, next header, least length, held, id, fence time (ms)
/// Returns how many it requeued | STALE | REFUSED (source is no list, missing right) | WRONGTYPE
inline constexpr auto release_text = moving_script(R"lua(
local p, source, heartbeat, consumers = unpack(KEYS)
if redis.call('LINDEX', p, -1) ~= ARGV[1] then return redis.error_reply('STALE header') end
if redis.call('LLEN', p) - 1 < tonumber(ARGV[3]) then return redis.error_reply('STALE length') end
local held = tonumber(ARGV[4])
local kinds, commands = {{source, 'list'}}, {{'LRANGE', p, '0', '0'}, {'RPUSH', source, 'x'}}
if held > 0 then
    commands[3], commands[4] = {'LTRIM', p, '0', '0'}, {'LSET', p, '0', 'x'}
else
    kinds[2] = {consumers, 'set'}
    commands[3], commands[4] = {'SET', p, 'x', 'PX', '1'}, {'DEL', heartbeat}
    commands[5] = {'SREM', consumers, 'x'}
end
local refused = refusal(kinds, commands)
if refused then return redis.error_reply('REFUSED ' .. refused.err) end
local back = redis.call('LRANGE', p, 0, -(held + 2))
for i = 1, #back, 1000 do
    redis.call('RPUSH', source, unpack(back, i, math.min(i + 999, #back)))
end
if held > 0 then
    redis.call('LTRIM', p, -(held + 1), -1)
    redis.call('LSET', p, -1, ARGV[2])
else
    redis.call('SET', p, 'released ' .. ARGV[2], 'PX', ARGV[6])
    redis.call('DEL', heartbeat)
    redis.call('SREM', consumers, ARGV[5])
end
return #back
)lua");
inline constinit const CachedScript release_script(release_text);

/// Takes over the list of this consumer's earlier incarnation and leaves a fence in its place.
///
/// KEYS old heartbeat, old processing, new heartbeat, new processing, consumers
/// ARGV old id, new id, new header, fence time (ms), lease (ms), old header without its number
/// Returns {old header or '', payloads newest first} | FENCED <text> | BUSYNAME
inline std::string_view adopt_script() {
    static constexpr auto script = moving_script(take_headers_function, R"lua(
local old_heartbeat, old, new_heartbeat, new, consumers = unpack(KEYS)
local refused = refusal({{new_heartbeat, 'string'}, {consumers, 'set'}}, {
    {'TYPE', old}, {'GET', old}, {'LRANGE', old, '0', '0'}, {'RPOP', old}, {'EXISTS', new},
    {'RENAME', old, new}, {'RPUSH', new, 'x'}, {'SET', old, 'x', 'PX', '1'},
    {'DEL', old_heartbeat}, {'SET', new_heartbeat, '1', 'PX', '1'}, {'SREM', consumers, 'x'},
    {'SADD', consumers, 'x'}})
if refused then return refused end
if redis.call('TYPE', old).ok == 'string' then
    return redis.error_reply('FENCED ' .. redis.call('GET', old))
end
if redis.call('EXISTS', new) == 1 then return redis.error_reply('BUSYNAME ' .. new) end
local held, header, others = take_headers(redis.call('LRANGE', old, 0, -1), ARGV[6])
if #others > 0 then
    refused = refusal({}, {{'LREM', old, '0', 'x'}})
    if refused then return refused end
end
for _, other in ipairs(others) do redis.call('LREM', old, 0, other) end
if header ~= '' then redis.call('RPOP', old) end
if #held > 0 then redis.call('RENAME', old, new) end
redis.call('RPUSH', new, ARGV[3])
redis.call('SET', old, 'adopted ' .. ARGV[2] .. ' ' .. header, 'PX', ARGV[4])
redis.call('DEL', old_heartbeat)
redis.call('SREM', consumers, ARGV[1])
redis.call('SET', new_heartbeat, '1', 'PX', ARGV[5])
redis.call('SADD', consumers, ARGV[2])
return {header, held}
)lua");
    return script;
}

/// Tells how much an adoption that is never answered has in its reply, and prolongs the lease of
/// the incarnation that has the list.
///
/// KEYS heartbeat and processing of each incarnation, of which one has a list
/// ARGV lease (ms)
/// Returns {messages, bytes of all, bytes of the largest}
/// O(bytes)
inline std::string_view measure_script() {
    static constexpr auto script = moving_script(R"lua(
local refused = refusal({}, {{'TYPE', KEYS[2]}, {'LRANGE', KEYS[2], '0', '0'},
    {'SET', KEYS[1], '1', 'PX', '1'}})
if refused then return refused end
local messages, bytes, largest = 0, 0, 0
for i = 2, #KEYS, 2 do
    if redis.call('TYPE', KEYS[i]).ok == 'list' then
        for _, payload in ipairs(redis.call('LRANGE', KEYS[i], 0, -2)) do
            messages, bytes = messages + 1, bytes + #payload
            largest = math.max(largest, #payload)
        end
        redis.call('SET', KEYS[i - 1], '1', 'PX', ARGV[1])
    end
end
return {messages, bytes, largest}
)lua");
    return script;
}

// Bodies of settlements, wrapped in the checks and the removal of `payload`.

/// ack of a suspect, which ends its recoveries: KEYS recoveries
inline Script ack_body() {
    static constexpr auto text = settling_script(recovery_field_function, R"lua(
local field = recovery_field(payload)
redis.pcall('HDEL', KEYS[1], field, 'charged ' .. field)
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

/// push: KEYS target; ARGV [replacement]
inline Script push_body() {
    static constexpr auto text = settling_script(R"lua(
local refused = refusal({{KEYS[1], 'list'}}, {{'LPUSH', KEYS[1], 'x'}})
if refused then return refused end
redis.call('LPUSH', KEYS[1], ARGV[1] or payload)
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

/// release: KEYS source; ARGV what replaces the message, if anything
inline Script release_body() {
    static constexpr auto text = settling_script(R"lua(
local refused = refusal({{KEYS[1], 'list'}}, {{'RPUSH', KEYS[1], 'x'}})
if refused then return refused end
redis.call('RPUSH', KEYS[1], ARGV[1] or payload)
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

/// bury: KEYS dead; ARGV reason
inline Script bury_body() {
    static constexpr auto text = settling_script(dead_entry_function, prefix_of_function,
                                                 group_ends_function, group_members_function, R"lua(
local ends = {}
local refused = refusal({{KEYS[1], 'list'}}, {{'LPUSH', KEYS[1], 'x'}, {'TIME'}})
    or note_member(ends, payload, true, KEYS[1])
if refused then return refused end
redis.call('LPUSH', KEYS[1], dead_entry(payload, ARGV[1]))
end_noted(ends)
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

} // namespace orizuru::detail
