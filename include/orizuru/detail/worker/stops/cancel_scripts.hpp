// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua script by which a worker has Redis forget requests to cancel jobs.

#include <orizuru/detail/redis/scripts/script_parts.hpp>

#include <string_view>

namespace orizuru::detail {

// KEYS cancelled; ARGV ids of jobs and their requests by turns: one that was made since then stays.
// Returns 1. O(requests)
inline std::string_view forget_cancels_script() {
    static constexpr auto script = moving_script(R"lua(
local cancelled = KEYS[1]
local refused = refusal({{cancelled, 'hash'}}, {{'HGET', cancelled, 'x'}, {'HDEL', cancelled, 'x'}})
if refused then return refused end
for i = 1, #ARGV, 2 do
    if redis.call('HGET', cancelled, ARGV[i]) == ARGV[i + 1] then
        redis.call('HDEL', cancelled, ARGV[i])
    end
end
return 1
)lua");
    return script;
}

} // namespace orizuru::detail
