// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Grants what the rate of a queue allows, by Redis' clock alone. Its key holds the time of its last
// grant in microseconds, which may lie ahead; it expires when it says nothing any more.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/limits/rate.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace orizuru::detail {

/// Throws std::invalid_argument for a rate that cannot be.
inline void check_rate(const Rate& rate) {
    check_count("rate.most", rate.most, 1'000'000);
    check_time("rate.per", rate.per, std::chrono::milliseconds(1));
}

/// Returns the time between two grants in microseconds: rounded up and never even, so that a window
/// of `per` with both its ends has no more than `most`.
[[nodiscard]] constexpr std::int64_t grant_spacing(const Rate& rate) noexcept {
    return std::chrono::microseconds(rate.per).count() / rate.most + 1;
}

// KEYS the rate's; behind it lists, if grants are only of use while one of them has an element.
// ARGV spacing; how far ahead of now a grant may lie; how many are wanted, each a spacing behind
// the one before. Times are in microseconds. It frees or writes one number, so it also runs when
// memory is full: a full queue must drain.
//
// Returns {how many are granted, time until the first}; where none is, the time until one would
// have been, and {-1, 0} while the lists are empty. A last grant further ahead than any may be
// means that the clock was set back: the spacing then begins now.
inline std::string_view grant_script() {
    static constexpr auto script = moving_script(R"lua(
local rate = KEYS[1]
local spacing, ahead, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kinds = {{rate, 'string'}}
local commands = {{'TIME'}, {'GET', rate}, {'SET', rate, '1', 'PX', '1'}}
for i = 2, #KEYS do
    kinds[i], commands[i + 2] = {KEYS[i], 'list'}, {'LLEN', KEYS[i]}
end
local refused = refusal(kinds, commands)
if refused then return refused end
local waiting = #KEYS == 1 and 1 or 0
for i = 2, #KEYS do waiting = waiting + redis.call('LLEN', KEYS[i]) end
if waiting == 0 then return {-1, 0} end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', rate) or '') or now - spacing
local function grant(at)
    redis.call('SET', rate, string.format('%.0f', at), 'PX',
        string.format('%.0f', math.ceil((at - now + spacing) / 1000) + 1))
end
if last > now + ahead then
    last = now
    grant(last)
end
local first = math.max(now, last + spacing)
if first > now + ahead then return {0, first - now} end
local count = math.min(wanted, math.floor((now + ahead - first) / spacing) + 1)
grant(first + (count - 1) * spacing)
return {count, first - now}
)lua");
    return script;
}

} // namespace orizuru::detail
