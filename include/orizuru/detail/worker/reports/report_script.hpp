// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua script of a worker's report. It takes counts since the worker's start, and adds what is
// new to Redis: a report that comes twice adds nothing.

#include <orizuru/detail/redis/cached_script.hpp>
#include <orizuru/detail/redis/script_parts.hpp>

namespace orizuru::detail {

// KEYS worker, counts, counts of the day; ARGV the day since 1970 that is meant, after how many ms
// the worker's key expires (0: it goes at once) and the day's, how many jobs run, how many threads
// there are, when the worker began, and "field base count " for each field: `base` is how much of
// the count has been added, unless the worker's key says so. Returns 1; 0 when that key was not
// there; or the day that it is, if it is not the one that is meant: then nothing has changed. The
// worker's key is written first: if the rest failed, it would be lost, and not added twice. Only
// outcomes, which have no colon in their names, are counted by day. O(fields)
inline constexpr auto report_text = adding_script(R"lua(
local worker, counts, of_day = unpack(KEYS)
local refused = refusal({{worker, 'hash'}, {counts, 'hash'}, {of_day, 'hash'}}, {{'TIME'},
    {'EXISTS', worker}, {'HMGET', worker, 'x'}, {'HSET', worker, 'x', 'x'},
    {'PEXPIRE', worker, '1'}, {'HINCRBY', counts, 'x', '1'}, {'HINCRBY', of_day, 'x', '1'},
    {'PEXPIRE', of_day, '1'}})
if refused then return refused end
local day = math.floor(redis.call('TIME')[1] / 86400)
if day ~= tonumber(ARGV[1]) then return day end
local known = redis.call('EXISTS', worker)
local says = {'running', ARGV[4], 'threads', ARGV[5], 'started', ARGV[6]}
local fields, bases, totals = {}, {}, {}
for field, base, total in string.gmatch(ARGV[7], '(%S+) (%d+) (%d+)') do
    fields[#fields + 1], bases[#bases + 1], totals[#totals + 1] = field, base, total
end
local last = fields[1] and redis.call('HMGET', worker, unpack(fields)) or {}
local more, dated = {}, false
for i, field in ipairs(fields) do
    local new = totals[i] - (last[i] or bases[i])
    if new >= 0 then says[#says + 1], says[#says + 2] = field, totals[i] end
    if new > 0 then more[field] = string.format('%.0f', new) end
end
redis.call('HSET', worker, unpack(says))
redis.call('PEXPIRE', worker, ARGV[2])
for field, count in pairs(more) do
    redis.call('HINCRBY', counts, field, count)
    if not string.find(field, ':') then
        redis.call('HINCRBY', of_day, field, count)
        dated = true
    end
end
if dated then redis.call('PEXPIRE', of_day, ARGV[3]) end
return known
)lua");
inline constinit const CachedScript report_script(report_text);

} // namespace orizuru::detail
