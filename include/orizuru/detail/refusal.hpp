// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a script looks at before its first write, so that it writes all or nothing: Redis keeps what
// a script wrote before a command of it failed.

#include <string_view>

namespace orizuru::detail {

/// The Lua function refusal(kinds, commands): an error for the first of {key, type}... that is
/// something else, or of the commands that the user may not run on its first argument; else nil.
inline constexpr std::string_view refusal_function = R"lua(
local function refusal(kinds, commands)
    for _, wanted in ipairs(kinds) do
        local found = redis.call('TYPE', wanted[1]).ok
        if found ~= wanted[2] and found ~= 'none' then
            return redis.error_reply('WRONGTYPE ' .. wanted[1] .. ' is a ' .. found)
        end
    end
    for _, command in ipairs(commands) do
        if redis.acl_check_cmd and not redis.acl_check_cmd(unpack(command)) then
            return redis.error_reply('NOPERM this user may not run ' .. command[1] .. ' on ' ..
                command[2])
        end
    end
end
)lua";

} // namespace orizuru::detail
