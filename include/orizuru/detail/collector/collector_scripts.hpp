// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The collector's Lua scripts. They only move or free, so they run when memory is full (allow-oom).

#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/dead_entries.hpp>
#include <orizuru/detail/redis/scripts/group_ends.hpp>
#include <orizuru/detail/redis/scripts/own_locks.hpp>
#include <orizuru/detail/redis/scripts/recovery_counts.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/detail/redis/scripts/write_series.hpp>

#include <chrono>
#include <string_view>

namespace orizuru::detail {

/// Goes on with the series of writes, if one goes on: collectors may be all that writes. Where all
/// consumers have been heard, it ends a mark.
///
/// KEYS writes, and one that never exists: a node then refuses this, like beats, while it gives the
///   slot away
/// ARGV the gap of a mark (ms), how many consumers were not heard
/// Returns 1 | 0 none | WRONGTYPE | NOPERM
inline constexpr auto visit_text = moving_script(series_functions, R"lua(
local refused = no_series(KEYS[1])
if refused then return refused end
local gap, age, credit, passed = series(KEYS[1])
if not gap then return 0 end
if gap == tonumber(ARGV[1]) then
    if ARGV[2] == '0' then set_series(KEYS[1], 1, 0, 0) end
    return 0
end
set_series(KEYS[1], gap, age + passed, credit)
return 1
)lua");
inline constinit const CachedScript visit_script(visit_text);

/// The Lua function told(header): what a consumer says of itself there (Identity::nonce), its lease
/// (ms) and how many messages it handles at once; nil for what it does not say.
inline constexpr char told_function[] = R"lua(
local function told(header)
    local lease, jobs = string.match(header or '', '^orz:%x+l(%d+)n?(%d*):%d+$')
    return tonumber(lease), tonumber(jobs)
end
)lua";

/// Decides if a missing heartbeat counts yet: the function look(list, writes, options) returns 0 if
/// it does, else how long Redis still has to take writes and for how long the series goes on by
/// itself (ms).
///
/// Once Redis takes writes, a living consumer has beaten again within a third of its lease. So the
/// series must have lasted for half the lease; for all of it, if the collector has the time
/// (`allowance`). Without a lease in the header, as in 0.1.0, it is the grace, with pauses of 2 s
/// at most.
///
/// Where no series goes on, nobody may be left to write. A collector that stays writes itself. A
/// single collect() leaves a mark; the time since then is a credit to the next call. So is the time
/// of a series with longer gaps: the beat of a consumer with a shorter lease would have ended it.
/// With a credit a call needs to see 2 s: a consumer whose beat was refused has beaten again by
/// then.
///
/// A series goes on over an outage that is shorter than its gap. Where two follow one another, the
/// living may have had no time to beat in between. A collector that was refused, or lost its
/// connection, knows of the second one. So it waits until Redis has answered it for as long as a
/// living consumer needs for its next attempt: one that has begun ends within its command_timeout,
/// taken to be the collector's, or a third of the lease, and the next begins attempts_apart(lease)
/// later.
inline constexpr char look_function[] = R"lua(
local function look(list, writes, options)
    local grace, allowance, stays = tonumber(options[1]), tonumber(options[2]), options[3] == '1'
    local lease = told(list[1])
    local gap = lease and gap_of(lease) or 2000
    local need = lease and math.max(math.floor(lease / 2), math.min(lease, allowance)) or grace
    if no_series(writes) then return math.max(0, need - options[4]), gap end
    local mark, fresh = tonumber(options[5]), math.min(need, 2000)
    local before, age, credit, passed = series(writes)
    if not stays and not before and need > fresh then
        set_series(writes, mark, 0, 0)
        return need, mark
    end
    if not stays and before and before > gap then
        credit = lease and age + passed + credit or 0
        if lease and credit + fresh < need then
            return need - credit - fresh, before
        end
        gap = math.min(gap, math.max(1, math.floor(fresh / 2)))
        set_series(writes, gap, 0, credit)
        return math.max(need - credit, fresh), gap
    end
    gap, age, credit = longer_series(writes, gap)
    local answered = stays and lease and tonumber(options[8])
    local unsure = answered and math.min(math.floor(lease / 3), options[9]) +
        math.min(math.floor(lease / 12), 1000) - answered or 0
    local left = math.max(need - age - credit, fresh - age, unsure)
    if left <= 0 then return 0 end
    set_series(writes, gap, age, credit)
    return left, gap
end
)lua";

/// Requeues a dead consumer's messages at the source's serving end, fences its list and unregisters
/// it, if its heartbeat has been missing long enough. Blames the oldest messages for the death, as
/// many as the consumer handled at once; where its header does not say that, as many as ARGV says.
/// Counts the death for each of them, and moves those with more than the most recoveries to the
/// dead list. Where more than one is blamed, the others of them go behind the suspects that wait
/// apart, if a consumer can take them from there and the user may write to it. Equal blamed
/// messages count once and move together; an equal message that is not blamed is requeued. If the
/// dead list is over its limit then, the oldest entries go, up to 1000 more than are buried, and
/// the locks of unique jobs among them; all stay where one of these locks cannot be read and
/// deleted: messages do not wait for that. A buried one counts in its group, if the dead do there
/// and the user may write to it.
///
/// KEYS heartbeat, processing, source, consumers, recoveries, dead, writes, suspects,
///   suspects:asked
/// ARGV id, fence time (ms), most recoveries, memory of recoveries (s), limit of dead or 0,
///   how many are blamed; grace, allowance (ms), '1' if the collector stays, for how long it
///   has been connected (ms), the gap of a mark (ms); for how long suspects wait apart, or for a
///   lease, until somebody asks for them (ms); '1' if a living consumer can take them, '0' if none
///   can, '' if none lives: then the next one is taken to be as the dead one; for how long Redis
///   has answered the collector since it last refused it or was lost (ms), '' if it never was; how
///   long an attempt to beat lasts (ms). With a grace of 0 a missing heartbeat is enough.
/// Returns {-1} alive | {-2} fenced already | {-3, ms, ms} not yet: how long Redis must go on to
///   take writes, and within which time the next must come | {moved, of these apart, buried,
///   payload of each buried message, oldest first, payload and recoveries of each apart} |
///   WRONGTYPE | ERR (a stored count is no number)
/// O(messages held); hashes the payloads of the blamed.
inline constexpr auto reap_text =
    moving_script(take_headers_function, dead_entry_function, read_entry_function,
                  prefix_of_function, group_ends_function, group_members_function,
                  own_locks_function, oldest_locks_function, dead_job_function,
                  recovery_field_function, series_functions, told_function, look_function, R"lua(
local heartbeat, processing, source, consumers, recoveries, dead, writes, suspects, asked =
    unpack(KEYS)
local refused = refusal({}, {
    {'EXISTS', heartbeat}, {'TYPE', processing}, {'LRANGE', processing, '0', '0'},
    {'SET', processing, 'x', 'PX', '1'}, {'RPUSH', source, 'x'}, {'DEL', heartbeat},
    {'SREM', consumers, 'x'}, {'HGET', recoveries, 'x'}, {'HINCRBY', recoveries, 'x', '1'},
    {'EXPIRE', recoveries, '1'}, {'HDEL', recoveries, 'x'}, {'LPUSH', dead, 'x'},
    {'LLEN', dead}, {'LTRIM', dead, '0', '0'}, {'TIME'}})
if refused then return refused end
if redis.call('EXISTS', heartbeat) == 1 then return {-1} end
if redis.call('TYPE', processing).ok == 'string' then
    refused = refusal({{consumers, 'set'}}, {})
    if refused then return refused end
    redis.call('SREM', consumers, ARGV[1])
    return {-2}
end
refused = refusal({{processing, 'list'}, {source, 'list'}, {consumers, 'set'},
    {recoveries, 'hash'}, {dead, 'list'}}, {})
if refused then return refused end
if tonumber(ARGV[7]) > 0 then
    local wait, gap =
        look(redis.call('LRANGE', processing, -1, -1), writes, {unpack(ARGV, 7)})
    if wait > 0 then return {-3, wait, gap} end
end
local held, header = take_headers(redis.call('LRANGE', processing, 0, -1))
local lease, jobs = told(header)
local most, blamed = tonumber(ARGV[3]), jobs or tonumber(ARGV[6])
local deaths, back, apart, buried = {}, {}, {}, {}
local takers = ARGV[13] == '1' or ARGV[13] == '' and lease
local suspected = blamed > 1 and takers and apart or back
if suspected == apart and refusal({{suspects, 'list'}, {asked, 'string'}}, {
        {'LPUSH', suspects, 'x'}, {'SET', asked, '', 'PX', '1'}}) then
    suspected = back
end
for i, payload in ipairs(held) do
    local to = back
    if i > #held - blamed then
        local field = recovery_field(payload)
        local before = redis.call('HGET', recoveries, field) or '0'
        if before ~= '0' and not string.find(before, '^[1-9]%d*$') or #before > 15 then
            return redis.error_reply('ERR ' .. recoveries .. ' has no number in ' .. field)
        end
        deaths[field] = before + 1
        to = deaths[field] > most and buried or suspected
    end
    to[#to + 1] = payload
end
local dropped, locks = 0, nil
-- Messages do not wait for a group that cannot be read.
local function note_deaths()
    locks = {ends = {}}
    for _, payload in ipairs(buried) do note_member(locks.ends, payload, true, dead) end
end
note_deaths()
local over = ARGV[5] ~= '0' and #buried > 0 and redis.call('LLEN', dead) + #buried - ARGV[5] or 0
if over > 0 then
    local length, prefix = redis.call('LLEN', dead), string.sub(dead, 1, -5)
    refused = refusal({}, {{'LRANGE', dead, '0', '0'}})
    if not refused then
        dropped, refused =
            note_oldest(locks, dead, prefix, math.min(over, length, 1000 + #buried), dead_job)
    end
    for i = #buried, #buried - (dropped == length and over - dropped or 0) + 1, -1 do
        refused = refused or note_lock(locks, buried[i], prefix)
        dropped = dropped + 1
    end
    if refused then
        dropped = 0
        note_deaths()
    end
end
for field, times in pairs(deaths) do
    if times > most then
        redis.call('HDEL', recoveries, field, 'charged ' .. field)
    else
        redis.call('HINCRBY', recoveries, field, 1)
    end
end
if #held > 0 then redis.call('EXPIRE', recoveries, ARGV[4]) end
local outcome = {#back + #apart, #apart, #buried}
for i = #buried, 1, -1 do
    redis.call('LPUSH', dead, dead_entry(buried[i],
        (blamed == 1 and 'held as the oldest message by ' or 'held by ') ..
            deaths[recovery_field(buried[i])] .. ' consumers that died'))
    outcome[#outcome + 1] = buried[i]
end
if dropped > 0 then redis.call('LTRIM', dead, 0, -1 - dropped) end
release(locks)
for i = #apart, 1, -1 do
    redis.call('LPUSH', suspects, apart[i])
    outcome[#outcome + 1] = apart[i]
    outcome[#outcome + 1] = deaths[recovery_field(apart[i])]
end
if #apart > 0 then
    redis.call('SET', asked, '', 'PX', string.format('%d', math.max(ARGV[12], lease or 0)))
end
for i = 1, #back, 1000 do
    redis.call('RPUSH', source, unpack(back, i, math.min(i + 999, #back)))
end
redis.call('SET', processing, 'reaped ' .. header, 'PX', ARGV[2])
redis.call('DEL', heartbeat)
redis.call('SREM', consumers, ARGV[1])
return outcome
)lua");
inline constinit const CachedScript reap_script(reap_text);

/// True if the consumer whose list has this header can take suspects, as those that write their
/// lease can.
[[nodiscard]] inline bool takes_suspects(std::string_view header) {
    const auto colon = header.rfind(':');
    return header.starts_with("orz:") && colon != std::string_view::npos &&
           header.substr(0, colon).find('l') != std::string_view::npos;
}

/// Moves up to 1000 suspects to the serving end of the source, the newest first, if no consumer has
/// asked for them for long.
///
/// KEYS suspects, source, suspects:asked
/// Returns how many | WRONGTYPE
inline constexpr auto return_suspects_text = moving_script(R"lua(
local suspects, source, asked = unpack(KEYS)
local refused = refusal({{suspects, 'list'}, {source, 'list'}}, {{'EXISTS', asked},
    {'LMOVE', suspects, source, 'LEFT', 'RIGHT'}})
if refused then return refused end
local moved = 0
while moved < 1000 and redis.call('EXISTS', asked) == 0 and
        redis.call('LMOVE', suspects, source, 'LEFT', 'RIGHT') do
    moved = moved + 1
end
return moved
)lua");
inline constinit const CachedScript return_suspects_script(return_suspects_text);

/// Moves up to n messages from one list's right end to another's left end, oldest first.
///
/// KEYS from, to; ARGV n
/// Returns how many | WRONGTYPE
inline constexpr auto refill_text = moving_script(R"lua(
local from, to = unpack(KEYS)
local refused = refusal({{from, 'list'}, {to, 'list'}}, {{'LRANGE', from, '0', '0'},
    {'LPUSH', to, 'x'}, {'LTRIM', from, '0', '0'}})
if refused then return refused end
local taken = redis.call('LRANGE', from, -ARGV[1], -1)
if #taken == 0 then return 0 end
local oldest_first = {}
for i = #taken, 1, -1 do oldest_first[#oldest_first + 1] = taken[i] end
redis.call('LPUSH', to, unpack(oldest_first))
redis.call('LTRIM', from, 0, -1 - #taken)
return #taken
)lua");
inline constinit const CachedScript refill_script(refill_text);

} // namespace orizuru::detail
