// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How a job's progress and its result are written.

#include <orizuru/detail/redis/script_parts.hpp>

#include <string>

namespace orizuru::detail {

// KEYS[1] progress; ARGV[1] ttl in ms, [2] fraction, [3] note.
inline std::string_view set_progress_script() {
    static constexpr auto script = adding_script(R"lua(
local key = KEYS[1]
local refused = refusal({{key, 'hash'}},
    {{'TIME'}, {'HSET', key, 'x', 'x'}, {'PEXPIRE', key, '1'}})
if refused then return refused end
local time = redis.call('TIME')
redis.call('HSET', key, 'fraction', ARGV[2], 'note', ARGV[3],
    'when', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('PEXPIRE', key, ARGV[1])
)lua");
    return script;
}

// KEYS[1] result; ARGV[1] ttl in ms, [2] its bytes.
inline std::string_view set_result_script() {
    static constexpr auto script = adding_script(R"lua(
local result = KEYS[1]
local refused = refusal({{result, 'string'}}, {{'SET', result, 'x', 'PX', '1'}})
if refused then return refused end
redis.call('SET', result, ARGV[2], 'PX', ARGV[1])
)lua");
    return script;
}

} // namespace orizuru::detail
