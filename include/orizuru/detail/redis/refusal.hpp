// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The checks that a script makes before its first write, so that it writes all or nothing: when a
// command fails, Redis keeps the script's earlier writes.

#include <orizuru/detail/base/joined_text.hpp>

#include <cstddef>

namespace orizuru::detail {

/// The Lua function refusal(kinds, commands). It returns an error for the first of `commands`, each
/// {name, key, argument...}, that the user may not run or the server does not have, or for the
/// first of `kinds`, each {key, type}, whose key holds another type; else nil.
///
/// acl_check_cmd, which Redis has since 7.0, raises an error for a renamed command.
inline constexpr char refusal_function[] = R"lua(
local function refusal(kinds, commands)
    if not redis.acl_check_cmd then
        return redis.error_reply('NOPERM this needs Redis 7.0 or newer')
    end
    local function missing(command)
        local known, allowed = pcall(redis.acl_check_cmd, unpack(command))
        if known and allowed then return end
        local on = command[2] and ' on ' .. command[2] or ''
        return redis.error_reply('NOPERM ' .. (known and 'this user may not run ' or
            'this server has no command ') .. command[1] .. on)
    end
    for _, command in ipairs(commands) do
        local refused = missing(command)
        if refused then return refused end
    end
    for _, wanted in ipairs(kinds) do
        local refused = missing({'TYPE', wanted[1]})
        if refused then return refused end
        local found = redis.call('TYPE', wanted[1]).ok
        if found ~= wanted[2] and found ~= 'none' then
            return redis.error_reply('WRONGTYPE ' .. wanted[1] .. ' is a ' .. found)
        end
    end
end
)lua";

// Scripts are put together while the program is compiled (cached_script.hpp says why).

/// That function followed by a body, in pieces. Redis refuses the script when its memory is full.
template <std::size_t... Sizes>
[[nodiscard]] consteval auto adding_script(const char (&... body)[Sizes]) {
    return joined_text("#!lua", refusal_function, body...);
}

inline constexpr char moving_flags[] = "#!lua flags=allow-oom";

/// The same for a body that only moves or frees: it also runs when Redis' memory is full.
template <std::size_t... Sizes>
[[nodiscard]] consteval auto moving_script(const char (&... body)[Sizes]) {
    return joined_text(moving_flags, refusal_function, body...);
}

/// The same for a body that only reads.
template <std::size_t... Sizes>
[[nodiscard]] consteval auto reading_script(const char (&... body)[Sizes]) {
    return joined_text("#!lua flags=no-writes", refusal_function, body...);
}

} // namespace orizuru::detail
