// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The script that runs a settlement's body and removes the message in the same step.

#include <orizuru/detail/base/joined_text.hpp>
#include <orizuru/detail/redis/refusal.hpp>

#include <cstddef>

namespace orizuru::detail {

// KEYS[1] processing; KEYS[2..] the body's.
// ARGV[1] header expected, [2] next header, [3] least length, [4] index of the message; [5..] the
// body's. Returns 1 | STALE (not the list it was written for) | REFUSED (by the body) | WRONGTYPE
// (fenced). The marker is the next header: it is fresh, so it cannot be in the list yet.
inline constexpr char before_settling_body[] = R"lua(
local p = KEYS[1]
if redis.call('LINDEX', p, -1) ~= ARGV[1] then return redis.error_reply('STALE header') end
if redis.call('LLEN', p) - 1 < tonumber(ARGV[3]) then return redis.error_reply('STALE length') end
local missing = refusal({}, {{'LSET', p, '0', 'x'}, {'LREM', p, '0', 'x'}})
if missing then return missing end
local function body(KEYS, ARGV, payload)
)lua";

inline constexpr char behind_settling_body[] = R"lua(
end
local ran, refused = pcall(body, {unpack(KEYS, 2)}, {unpack(ARGV, 5)},
    redis.call('LINDEX', p, ARGV[4]))
if not ran then
    refused = type(refused) == 'table' and refused or {err = tostring(refused)}
    if not string.find(refused.err, '^%u+ ') then refused.err = 'ERR ' .. refused.err end
end
if type(refused) == 'table' and refused.err then
    return redis.error_reply('REFUSED ' .. refused.err)
end
redis.call('LSET', p, ARGV[4], ARGV[2])
redis.call('LREM', p, -1, ARGV[2])
redis.call('LSET', p, -1, ARGV[2])
return 1
)lua";

/// The whole script of a body, in one piece or several, that is known to the compiler.
template <std::size_t... Sizes>
[[nodiscard]] consteval auto settling_script(const char (&... body)[Sizes]) {
    return moving_script(before_settling_body, body..., behind_settling_body);
}

} // namespace orizuru::detail
