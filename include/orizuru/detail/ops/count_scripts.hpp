// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua scripts that read what workers have reported.

#include <orizuru/detail/redis/scripts/script_parts.hpp>

namespace orizuru::detail {

// KEYS the counts of some days. Returns the fields and values of each. O(keys)
inline constexpr auto day_counts_script = reading_script(R"lua(
for _, key in ipairs(KEYS) do
    local refused = refusal({{key, 'hash'}}, {{'HGETALL', key}})
    if refused then return refused end
end
local found = {}
for i, key in ipairs(KEYS) do found[i] = redis.call('HGETALL', key) end
return found
)lua");

// KEYS consumers; ARGV the prefix of workers' reports, whose keys it finds as it goes: it checks
// its rights by the key that is known. Returns {id, fields and values} for each. O(consumers)
inline constexpr auto worker_reports_script = reading_script(R"lua(
local consumers, prefix = KEYS[1], ARGV[1]
local refused = refusal({{consumers, 'set'}}, {{'SMEMBERS', consumers}, {'TYPE', consumers},
    {'HGETALL', consumers}})
if refused then return refused end
local found = {}
for _, id in ipairs(redis.call('SMEMBERS', consumers)) do
    if redis.call('TYPE', prefix .. id).ok == 'hash' then
        found[#found + 1] = {id, redis.call('HGETALL', prefix .. id)}
    end
end
return found
)lua");

} // namespace orizuru::detail
