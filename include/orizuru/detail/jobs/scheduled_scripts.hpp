// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The steps of the tool for scheduled messages (schedule_source.hpp says what their elements are).
//
// They only move or free, so they run when memory is full (allow-oom).

#include <orizuru/detail/jobs/fresh_wait.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

namespace orizuru::detail {

// KEYS[1] scheduled, [2] the job's lock, if it has one; ARGV[1] the element, [2] the lock's value.
// Returns 1, or 0 when the element is not there: then the lock stays, too.
inline constexpr auto cancel_scheduled_script = moving_script(R"lua(
local scheduled, lock = KEYS[1], KEYS[2]
local kinds, commands = {{scheduled, 'zset'}}, {{'ZREM', scheduled, 'x'}}
if lock then
    kinds[2] = {lock, 'string'}
    commands[2], commands[3] = {'GET', lock}, {'DEL', lock}
end
local refused = refusal(kinds, commands)
if refused then return refused end
if redis.call('ZREM', scheduled, ARGV[1]) == 0 then return 0 end
if lock and redis.call('GET', lock) == ARGV[2] then redis.call('DEL', lock) end
return 1
)lua");

// KEYS[1] scheduled, [2] source; ARGV[1] the element. Returns 1, or 0 when it is not there.
inline constexpr auto run_scheduled_script = moving_script(waits_from_now_function, R"lua(
local scheduled, source = KEYS[1], KEYS[2]
local refused = refusal({{scheduled, 'zset'}, {source, 'list'}},
    {{'ZREM', scheduled, 'x'}, {'LPUSH', source, 'x'}})
if refused then return refused end
if redis.call('ZREM', scheduled, ARGV[1]) == 0 then return 0 end
redis.call('LPUSH', source, waits_from_now(string.sub(ARGV[1], 9), 'early'))
return 1
)lua");

} // namespace orizuru::detail
