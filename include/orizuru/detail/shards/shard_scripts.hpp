// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua scripts that change a queue's shards.

#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

#include <string_view>

namespace orizuru::detail {

/// The Lua function retired(source): the number of the change by which a shard was retired, nothing
/// if it is not. The text in place of its source list has that number: a producer that still pushes
/// gets WRONGTYPE.
inline constexpr char retired_function[] = R"lua(
local function retired(source)
    if redis.call('TYPE', source).ok ~= 'string' then return end
    return tonumber(string.match(redis.call('GET', source), '^orizuru:retired (%d+)$'))
end
)lua";

/// Replaces a key's text if that is the expected one.
///
/// KEYS key; ARGV the text expected, '' = no such key; the new one
/// Returns 1 | 0 it has another text, or another type
inline constexpr auto replace_text_text = moving_script(R"lua(
local key, expected, new = KEYS[1], ARGV[1], ARGV[2]
local refused = refusal({}, {{'TYPE', key}, {'GET', key}, {'SET', key, 'x'}})
if refused then return refused end
local kind = redis.call('TYPE', key).ok
if kind ~= 'none' and kind ~= 'string' then return 0 end
if (kind == 'string' and redis.call('GET', key) or '') ~= expected then return 0 end
redis.call('SET', key, new)
return 1
)lua");
inline const CachedScript& cached_replace_text() {
    static constinit const CachedScript script(replace_text_text);
    return script;
}

/// Lets producers push to a shard again, unless a later change has retired it.
///
/// KEYS source; ARGV the number of the change that says so
/// Returns 1 | 0 it was not retired, or later
inline constexpr auto open_shard_text = moving_script(retired_function, R"lua(
local source = KEYS[1]
local refused = refusal({}, {{'TYPE', source}, {'GET', source}, {'DEL', source}})
if refused then return refused end
local change = retired(source)
if not change or change > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', source)
return 1
)lua");
inline const CachedScript& cached_open_shard() {
    static constinit const CachedScript script(open_shard_text);
    return script;
}

/// Retires a shard by a change, if it has no message anywhere.
///
/// KEYS source, unack, scheduled, dead, consumers, suspects; ARGV the change's number, the
///   processing lists' prefix
/// Returns 1 | 0 retired already | NOTEMPTY | WRONGTYPE
/// O(consumers)
inline constexpr auto retire_shard_text = moving_script(retired_function, R"lua(
local source, unack, scheduled, dead, consumers, suspects = unpack(KEYS)
local refused = refusal({}, {{'TYPE', source}, {'GET', source}, {'LLEN', source},
    {'SET', source, 'x'}, {'LLEN', unack}, {'ZCARD', scheduled}, {'LLEN', dead},
    {'SMEMBERS', consumers}, {'LLEN', suspects}, {'LLEN', ARGV[2] .. 'x'}})
if refused then return refused end
local before = retired(source)
if before then
    if before < tonumber(ARGV[1]) then redis.call('SET', source, 'orizuru:retired ' .. ARGV[1]) end
    return 0
end
refused = refusal({{source, 'list'}, {unack, 'list'}, {scheduled, 'zset'}, {dead, 'list'},
    {consumers, 'set'}, {suspects, 'list'}}, {})
if refused then return refused end
local held = 0
for _, id in ipairs(redis.call('SMEMBERS', consumers)) do
    local list = ARGV[2] .. id
    if redis.call('TYPE', list).ok == 'list' then held = held + redis.call('LLEN', list) - 1 end
end
local found = {}
for _, place in ipairs({{redis.call('LLEN', source), 'waiting'}, {held, 'held'},
        {redis.call('ZCARD', scheduled), 'scheduled'}, {redis.call('LLEN', unack), 'rejected'},
        {redis.call('LLEN', suspects), 'suspected'}, {redis.call('LLEN', dead), 'dead'}}) do
    if place[1] > 0 then found[#found + 1] = place[1] .. ' ' .. place[2] end
end
if #found > 0 then
    return redis.error_reply('NOTEMPTY it has messages: ' .. table.concat(found, ', '))
end
redis.call('SET', source, 'orizuru:retired ' .. ARGV[1])
return 1
)lua");
inline const CachedScript& cached_retire_shard() {
    static constinit const CachedScript script(retire_shard_text);
    return script;
}

} // namespace orizuru::detail
