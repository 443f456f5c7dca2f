// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua scripts: each is one atomic step on a queue's lists. The header, the rightmost element of
// a processing list, is `orz:<nonce>:<v>`; v counts the settlement scripts that have run. A script
// names the header that it expects and writes the next one, so each runs in the order sent and at
// most once. A string in place of the list is a fence: whoever finds it has lost the list.
//
// All check before their first write. They only move or free, so they run when memory is full
// (allow-oom).

#include <orizuru/detail/sha1.hpp>
#include <orizuru/script.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// How long a fence stays: longer than any paused process or half-open connection can last.
inline constexpr std::chrono::milliseconds fence_time = std::chrono::hours(24 * 7);

/// How long a message's recoveries are remembered.
inline constexpr std::chrono::seconds recovery_memory = std::chrono::hours(72);

/// The most messages that one fetch or one step of a collector moves: Lua's unpack has a limit.
inline constexpr int largest_batch = 1000;

/// Registers a consumer. Rights come first: a user who may fetch but not settle must not start.
///
/// KEYS heartbeat, processing, consumers, source, unack, dead; ARGV id, lease (ms), header
/// Returns 1 registered | 0 fenced | NOPERM. Repeated with the same id it changes nothing.
inline constexpr std::string_view start_script = R"lua(#!lua flags=allow-oom
local heartbeat, processing, consumers, source, unack, dead = unpack(KEYS)
if redis.acl_check_cmd then
    local other = processing .. ':'
    for _, command in ipairs({
        {'SET', heartbeat, '1', 'PX', '1'}, {'DEL', heartbeat}, {'SADD', consumers, 'x'},
        {'SREM', consumers, 'x'}, {'LINDEX', processing, '0'}, {'LLEN', processing},
        {'LSET', processing, '0', 'x'}, {'LREM', processing, '0', 'x'},
        {'LTRIM', processing, '0', '0'}, {'LRANGE', processing, '0', '0'},
        {'RPUSH', processing, 'x'}, {'LPUSH', processing, 'x'}, {'RPOP', processing},
        {'SET', processing, 'x', 'PX', '1'}, {'GET', processing}, {'EXISTS', processing},
        {'RENAME', processing, other}, {'RPOP', source, '1'}, {'RPUSH', source, 'x'},
        {'BLMOVE', source, processing, 'RIGHT', 'LEFT', '1'}, {'LPUSH', unack, 'x'},
        {'TYPE', unack}, {'LPUSH', dead, 'x'}, {'TYPE', dead}, {'TIME'},
        {'EVALSHA', string.rep('0', 40), '0'}}) do
        if not redis.acl_check_cmd(unpack(command)) then
            return redis.error_reply('NOPERM this user may not run ' .. command[1] .. ' on the keys of ' .. source)
        end
    end
end
local kind = redis.call('TYPE', processing).ok
if kind == 'string' then return 0 end
local registry = redis.call('TYPE', consumers).ok
if registry ~= 'set' and registry ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. consumers .. ' is a ' .. registry)
end
redis.call('SET', heartbeat, '1', 'PX', ARGV[2])
redis.call('SADD', consumers, ARGV[1])
if kind == 'none' then redis.call('RPUSH', processing, ARGV[3]) end
return 1
)lua";

/// Renews the lease.
///
/// KEYS heartbeat, processing, consumers; ARGV id, lease (ms)
/// Returns 1 | 0 fenced | 2 the list is gone (Redis was emptied or rewound).
inline constexpr std::string_view beat_script = R"lua(#!lua flags=allow-oom
local kind = redis.call('TYPE', KEYS[2]).ok
if kind == 'string' then return 0 end
redis.call('SET', KEYS[1], '1', 'PX', ARGV[2])
redis.call('SADD', KEYS[3], ARGV[1])
return kind == 'none' and 2 or 1
)lua";

/// Removes settled messages by position and fetches others.
///
/// KEYS processing, source
/// ARGV expected header, next header, least length, k, n, index...: the k oldest go, then those at
///   the indices (from the right, before anything is removed; the marker is the next header), and
///   up to n come from the source.
/// Returns the fetched, oldest first | STALE | SRC (settled, but the source is no list) | WRONGTYPE
/// O(k + n + greatest index); in the size of the payloads only for those fetched.
inline constexpr std::string_view settle_script = R"lua(#!lua flags=allow-oom
local p = KEYS[1]
if redis.call('LINDEX', p, -1) ~= ARGV[1] then return redis.error_reply('STALE header') end
local held = redis.call('LLEN', p) - 1
if held < tonumber(ARGV[3]) then return redis.error_reply('STALE length') end
local k, n = tonumber(ARGV[4]), ARGV[5]
if #ARGV > 5 then
    for i = 6, #ARGV do redis.call('LSET', p, ARGV[i], ARGV[2]) end
    redis.call('LREM', p, 5 - #ARGV, ARGV[2])
end
if k > 0 then
    redis.call('LTRIM', p, 0, -2 - k)
    redis.call('RPUSH', p, ARGV[2])
else
    redis.call('LSET', p, -1, ARGV[2])
end
if n == '0' then return {} end
local fetched = redis.pcall('RPOP', KEYS[2], n)
if not fetched then return {} end
if fetched.err then return redis.error_reply('SRC ' .. fetched.err) end
redis.call('LPUSH', p, unpack(fetched))
return fetched
)lua";

/// Gives back to the source's serving end whatever is newer than the `held` oldest messages; with
/// nothing held it leaves the fence and the registry in the same step.
///
/// KEYS processing, source, heartbeat, consumers
/// ARGV expected header, next header, least length, held, id, fence time (ms)
/// Returns how many went back | STALE | REFUSED (the source is no list) | WRONGTYPE
inline constexpr std::string_view release_script = R"lua(#!lua flags=allow-oom
local p = KEYS[1]
if redis.call('LINDEX', p, -1) ~= ARGV[1] then return redis.error_reply('STALE header') end
if redis.call('LLEN', p) - 1 < tonumber(ARGV[3]) then return redis.error_reply('STALE length') end
local kind = redis.call('TYPE', KEYS[2]).ok
if kind ~= 'list' and kind ~= 'none' then
    return redis.error_reply('REFUSED WRONGTYPE ' .. KEYS[2] .. ' is a ' .. kind)
end
local held = tonumber(ARGV[4])
local back = redis.call('LRANGE', p, 0, -(held + 2))
for i = 1, #back, 1000 do
    redis.call('RPUSH', KEYS[2], unpack(back, i, math.min(i + 999, #back)))
end
if held > 0 then
    redis.call('LTRIM', p, -(held + 1), -1)
    redis.call('LSET', p, -1, ARGV[2])
else
    redis.call('SET', p, 'released ' .. ARGV[2], 'PX', ARGV[6])
    redis.call('DEL', KEYS[3])
    redis.call('SREM', KEYS[4], ARGV[5])
end
return #back
)lua";

/// Takes over the list of an own earlier incarnation and fences it.
///
/// KEYS old heartbeat, old processing, new heartbeat, new processing, consumers
/// ARGV old id, new id, new header, fence time (ms), lease (ms), old header without its number
/// Returns {old header or '', payloads newest first} | FENCED <text> | BUSYNAME
inline constexpr std::string_view adopt_script = R"lua(#!lua flags=allow-oom
local old, new = KEYS[2], KEYS[4]
if redis.call('TYPE', old).ok == 'string' then
    return redis.error_reply('FENCED ' .. redis.call('GET', old))
end
if redis.call('EXISTS', new) == 1 then return redis.error_reply('BUSYNAME ' .. new) end
local held = redis.call('LRANGE', old, 0, -1)
local header = ''
if #held > 0 then
    if string.sub(held[#held], 1, #ARGV[6]) == ARGV[6] then
        header = table.remove(held)
        redis.call('RPOP', old)
    end
    if #held > 0 then redis.call('RENAME', old, new) end
end
redis.call('RPUSH', new, ARGV[3])
redis.call('SET', old, 'adopted ' .. ARGV[2] .. ' ' .. header, 'PX', ARGV[4])
redis.call('DEL', KEYS[1])
redis.call('SREM', KEYS[5], ARGV[1])
redis.call('SET', KEYS[3], '1', 'PX', ARGV[5])
redis.call('SADD', KEYS[5], ARGV[2])
return {header, held}
)lua";

/// Returns a dead consumer's messages to the source's serving end, fences its list and takes it out
/// of the registry. Those that are blamed for the death are counted, and go to the dead list when
/// that was once too often: the oldest ones, as many as is said, and no other for them, not even an
/// equal one. Equal ones among them are counted once and buried together.
///
/// KEYS heartbeat, processing, source, consumers, recoveries, dead
/// ARGV id, fence time (ms), most recoveries, memory of recoveries (s), limit of dead or 0,
///   how many are blamed
/// Returns {-1} alive | {-2} fenced already | {moved, buried, payload...}, of the buried, the
///   oldest first | WRONGTYPE | ERR (what was counted is no number)
/// O(messages held); the payloads of the blamed are hashed.
inline constexpr std::string_view reap_script = R"lua(#!lua flags=allow-oom
local heartbeat, processing, source, consumers, recoveries, dead = unpack(KEYS)
if redis.acl_check_cmd then
    for _, command in ipairs({
        {'EXISTS', heartbeat}, {'TYPE', processing}, {'TYPE', source}, {'TYPE', dead},
        {'TYPE', recoveries}, {'LRANGE', processing, '0', '0'}, {'RPUSH', source, 'x'},
        {'SET', processing, 'x', 'PX', '1'}, {'DEL', heartbeat}, {'SREM', consumers, 'x'},
        {'HGET', recoveries, 'x'}, {'HINCRBY', recoveries, 'x', '1'}, {'EXPIRE', recoveries, '1'},
        {'HDEL', recoveries, 'x'}, {'LPUSH', dead, 'x'}, {'LTRIM', dead, '0', '0'}, {'TIME'}}) do
        if not redis.acl_check_cmd(unpack(command)) then
            return redis.error_reply('NOPERM this user may not run ' .. command[1] ..
                ' on the keys of ' .. source)
        end
    end
end
if redis.call('EXISTS', heartbeat) == 1 then return {-1} end
local kind = redis.call('TYPE', processing).ok
if kind == 'string' then
    redis.call('SREM', consumers, ARGV[1])
    return {-2}
end
for _, wanted in ipairs({{processing, 'list'}, {source, 'list'}, {dead, 'list'},
        {recoveries, 'hash'}}) do
    local found = redis.call('TYPE', wanted[1]).ok
    if found ~= wanted[2] and found ~= 'none' then
        return redis.error_reply('WRONGTYPE ' .. wanted[1] .. ' is a ' .. found)
    end
end
local held = redis.call('LRANGE', processing, 0, -1)
local header = ''
if #held > 0 and string.find(held[#held], '^orz:%w+:%d+$') then header = table.remove(held) end
local most, blamed = tonumber(ARGV[3]), tonumber(ARGV[6])
local deaths, back, buried = {}, {}, {}
for i, payload in ipairs(held) do
    local to = back
    if i > #held - blamed then
        local field = redis.sha1hex(payload)
        local before = redis.call('HGET', recoveries, field) or '0'
        if before ~= '0' and not string.find(before, '^[1-9]%d*$') then
            return redis.error_reply('ERR ' .. recoveries .. ' has no number in ' .. field)
        end
        deaths[field] = before + 1
        if deaths[field] > most then to = buried end
    end
    to[#to + 1] = payload
end
for field, times in pairs(deaths) do
    if times > most then
        redis.call('HDEL', recoveries, field)
    else
        redis.call('HINCRBY', recoveries, field, 1)
    end
end
if #held > 0 then redis.call('EXPIRE', recoveries, ARGV[4]) end
local outcome = {#back, #buried}
local now = redis.call('TIME')
for i = #buried, 1, -1 do
    redis.call('LPUSH', dead, cmsgpack.pack({1, buried[i],
        (blamed == 1 and 'held as the oldest message by ' or 'held by ') ..
            deaths[redis.sha1hex(buried[i])] .. ' consumers that died',
        now[1] * 1000 + math.floor(now[2] / 1000)}))
    outcome[#outcome + 1] = buried[i]
end
if #buried > 0 and ARGV[5] ~= '0' then redis.call('LTRIM', dead, 0, ARGV[5] - 1) end
for i = 1, #back, 1000 do
    redis.call('RPUSH', source, unpack(back, i, math.min(i + 999, #back)))
end
redis.call('SET', processing, 'reaped ' .. header, 'PX', ARGV[2])
redis.call('DEL', heartbeat)
redis.call('SREM', consumers, ARGV[1])
return outcome
)lua";

/// Moves up to n messages from one list's right end to another's left end, the oldest first.
///
/// KEYS from, to; ARGV n
/// Returns how many | WRONGTYPE
inline constexpr std::string_view refill_script = R"lua(#!lua flags=allow-oom
if redis.acl_check_cmd then
    for _, command in ipairs({
        {'TYPE', KEYS[1]}, {'TYPE', KEYS[2]}, {'LRANGE', KEYS[1], '0', '0'},
        {'LPUSH', KEYS[2], 'x'}, {'LTRIM', KEYS[1], '0', '0'}}) do
        if not redis.acl_check_cmd(unpack(command)) then
            return redis.error_reply('NOPERM this user may not run ' .. command[1] ..
                ' on the keys of ' .. KEYS[2])
        end
    end
end
for _, key in ipairs(KEYS) do
    local found = redis.call('TYPE', key).ok
    if found ~= 'list' and found ~= 'none' then
        return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. found)
    end
end
local taken = redis.call('LRANGE', KEYS[1], -ARGV[1], -1)
if #taken == 0 then return 0 end
local oldest_first = {}
for i = #taken, 1, -1 do oldest_first[#oldest_first + 1] = taken[i] end
redis.call('LPUSH', KEYS[2], unpack(oldest_first))
redis.call('LTRIM', KEYS[1], 0, -1 - #taken)
return #taken
)lua";

/// A body for Script that adds something to the list KEYS[1], once type and rights allow it.
[[nodiscard]] inline Script adding_body(const std::string& command, const std::string& what) {
    return Script("local command, list = '" + command + R"lua(', KEYS[1]
local found = redis.call('TYPE', list).ok
if found ~= 'list' and found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. list .. ' is a ' .. found)
end
if redis.acl_check_cmd and not redis.acl_check_cmd(command, list, '') then
    return redis.error_reply('NOPERM this user may not run ' .. command .. ' on ' .. list)
end
)lua" + what);
}

/// What settles a message in one step with its removal.
/// push: KEYS target; ARGV [replacement]
inline const Script& push_body() {
    static const Script script =
        adding_body("LPUSH", "redis.call(command, list, ARGV[1] or payload)");
    return script;
}

/// release: KEYS source
inline const Script& give_back_body() {
    static const Script script = adding_body("RPUSH", "redis.call(command, list, payload)");
    return script;
}

/// bury: KEYS dead; ARGV reason
inline const Script& bury_body() {
    static const Script script = adding_body("LPUSH", R"lua(local now = redis.call('TIME')
redis.call(command, list, cmsgpack.pack({1, payload, ARGV[1],
    now[1] * 1000 + math.floor(now[2] / 1000)}))
)lua");
    return script;
}

/// A script of ours with its name in Redis' cache.
struct CachedScript {
    std::string_view source;
    Sha1Hex sha1_text = sha1_hex(source);

    [[nodiscard]] constexpr std::string_view sha1() const noexcept {
        return {sha1_text.data(), sha1_text.size()};
    }
};

inline constexpr CachedScript cached_settle{settle_script};
inline constexpr CachedScript cached_release{release_script};

} // namespace orizuru::detail
