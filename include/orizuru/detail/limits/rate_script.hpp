// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua functions that grant the permits of a rate, and the script that grants one.
//
// The key of a rate holds "next told", the times in microseconds at which the next permit is due,
// and until which those who wait were told to come again.

#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

namespace orizuru::detail {

/// Times are in microseconds: how far permits are `apart`, how `late` one may be taken without a
/// delay of the next, and the length of the rate's `span`.
///
/// The function take_due(rate, now, apart, late, span, wanted, longest): takes up to `wanted`
/// permits that are due. Returns how many, or 0 and after how many milliseconds to ask again; and
/// when the next one is due. Those who wait are told times that are `apart`. When they reach
/// `longest` from now, others are told that, and have no place in the line.
///
/// The function give_back(rate, now, apart, span, next_one, unused): gives back permits of those
/// that were taken last, if no others were taken since; `next_one` as take_due returned it.
///
/// A permit is never due farther away than one spacing: if it is, Redis' clock was set back, or
/// another host has taken over.
inline constexpr char rate_functions[] = R"lua(
local function read_rate(rate)
    local next_one, told = string.match(redis.call('GET', rate) or '', '^(%d+) (%d+)$')
    return tonumber(next_one or 0), tonumber(told or 0)
end
local function set_rate(rate, now, span, next_one, told)
    redis.call('SET', rate, string.format('%.0f %.0f', next_one, told), 'PX',
        string.format('%.0f', math.max(math.ceil((math.max(next_one, told) - now + span) / 1000), 1)))
end
local function take_due(rate, now, apart, late, span, wanted, longest)
    local next_one, told = read_rate(rate)
    next_one = math.min(next_one, now + apart)
    local taken, wait = 0, 0
    if next_one <= now then
        if next_one + span <= now then told = 0 end
        next_one = math.max(next_one, now - late)
        taken = math.min(wanted, math.floor((now - next_one) / apart) + 1)
        next_one = next_one + taken * apart
    elseif told > now + longest then
        wait = math.ceil(longest / 1000)
    else
        told = math.max(told, next_one - apart) + apart
        wait = math.ceil((told - now) / 1000)
    end
    set_rate(rate, now, span, next_one, told)
    return taken, wait, next_one
end
local function give_back(rate, now, apart, span, next_one, unused)
    local since, told = read_rate(rate)
    if since == next_one then set_rate(rate, now, span, since - unused * apart, told) end
end
)lua";

// KEYS rate; ARGV apart, late, span. Returns 0 for a permit, or after how many milliseconds to ask
// again. O(1)
inline constexpr auto take_permit_text = adding_script(rate_functions, R"lua(
local rate = KEYS[1]
local refused = refusal({{rate, 'string'}}, {{'TIME'}, {'GET', rate}, {'SET', rate, 'x'}})
if refused then return refused end
local time = redis.call('TIME')
local taken, wait = take_due(rate, time[1] * 1000000 + time[2], tonumber(ARGV[1]),
    tonumber(ARGV[2]), tonumber(ARGV[3]), 1, math.huge)
return wait
)lua");
inline constinit const CachedScript take_permit_script(take_permit_text);

} // namespace orizuru::detail
