// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua script that grants the permits of a rate.

#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

namespace orizuru::detail {

// KEYS rate: "next told", the times in microseconds at which the next permit is due, and until
// which those who wait were told to come again. ARGV in microseconds: how far permits are apart,
// how late one may be taken without a delay of the next, and the length of the rate's span. Returns
// 0 for a permit, or after how many milliseconds to ask again. O(1)
//
// A permit is never due farther away than one spacing: if it is, Redis' clock was set back, or
// another host has taken over.
inline constexpr auto take_permit_text = adding_script(R"lua(
local rate, apart, late, span = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local refused = refusal({{rate, 'string'}}, {{'TIME'}, {'GET', rate}, {'SET', rate, 'x'}})
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local next_one, told = string.match(redis.call('GET', rate) or '', '^(%d+) (%d+)$')
next_one = math.min(tonumber(next_one or 0), now + apart)
told = tonumber(told or 0)
local wait = 0
if next_one <= now then
    if next_one + span <= now then told = 0 end
    next_one = math.max(next_one, now - late) + apart
else
    told = math.max(told, next_one - apart) + apart
    wait = math.ceil((told - now) / 1000)
end
local until_then = math.ceil((math.max(next_one, told) - now + span) / 1000)
redis.call('SET', rate, string.format('%.0f %.0f', next_one, told), 'PX',
    string.format('%.0f', until_then))
return wait
)lua");
inline constinit const CachedScript take_permit_script(take_permit_text);

} // namespace orizuru::detail
