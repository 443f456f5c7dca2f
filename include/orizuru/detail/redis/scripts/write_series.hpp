// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua functions that tell since when Redis has taken a queue's writes (keys.hpp: `writes`).
// While it refuses or holds writes no consumer can beat, so the absence of a heartbeat proves
// nothing then. A restart, a failover and a pause of Redis look alike to this.
//
// Writes that are no further apart than a gap are a series. Its key expires a gap after the last
// one: only Redis' own clock counts, and no two times are compared. The value is three numbers:
// the gap, for how long the series had lasted at the last write, and for how long before it nobody
// had beaten (the credit), all in ms.

#include <orizuru/detail/base/joined.hpp>

#include <chrono>

namespace orizuru::detail {

/// The function gap_of(lease): the longest pause in a series that proves a consumer with that lease
/// absent. It is longer than the third of a lease between two beats: one consumer keeps a series
/// going. And a beat that was refused in one such pause comes again before the heartbeat expires.
/// After two pauses in quick succession it may not: see the function look (collector_scripts.hpp).
///
/// The function series(key): its gap, age and credit, and the time since the last write; nothing
/// if none goes on. A time to live that no write sets does not count.
///
/// The function longer_series(key, gap, is_beat): the gap, age and credit of the series that goes
/// on with a write now. A series with longer gaps than `gap` ends: there may have been a pause that
/// `gap` does not allow. Its credit then ends, too, if the write is a beat.
inline constexpr char series_functions[] = R"lua(
local function gap_of(lease) return math.floor(lease * 5 / 12) end
local function series(key)
    local gap, age, credit = string.match(redis.call('GET', key) or '', '^(%d+) (%d+) (%d+)$')
    local left = redis.call('PTTL', key)
    if gap and left > 0 and left <= tonumber(gap) then
        return tonumber(gap), tonumber(age), tonumber(credit), gap - left
    end
end
local function longer_series(key, gap, is_beat)
    local before, age, credit, passed = series(key)
    if before and before <= gap then return before, age + passed, credit end
    return gap, 0, before and not is_beat and credit or 0
end
local function set_series(key, gap, age, credit)
    redis.call('SET', key, string.format('%d %d %d', gap, age, credit), 'PX', gap)
end
local function no_series(key)
    return refusal({{key, 'string'}},
        {{'GET', key}, {'PTTL', key}, {'SET', key, 'x', 'PX', '1'}})
end
)lua";

/// A single collect() leaves a series with this gap, a mark, where nobody writes. The next call
/// takes the time since then for a credit.
inline constexpr std::chrono::milliseconds mark_gap = std::chrono::hours(24);

} // namespace orizuru::detail
