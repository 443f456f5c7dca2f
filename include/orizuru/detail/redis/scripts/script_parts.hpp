// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The parts of which scripts are made while the program is compiled (cached_script.hpp says why):
// Lua functions, a settlement's frame.

#include <orizuru/detail/base/joined.hpp>

#include <cstddef>

namespace orizuru::detail {

/// The Lua function refusal(kinds, commands): a script's checks before its first write, so that it
/// writes all or nothing. When a command fails, Redis keeps the script's earlier writes.
///
/// It returns an error for the first of `commands`, each {name, key, argument...}, that the user
/// may not run or the server does not have, or for the first of `kinds`, each {key, type}, whose
/// key holds another type; else nil.
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

/// That function followed by a body, in pieces. Redis refuses the script when its memory is full.
template <std::size_t... Sizes>
[[nodiscard]] consteval auto adding_script(const char (&... body)[Sizes]) {
    return joined_text("#!lua", refusal_function, body...);
}

inline constexpr char moving_flags[] = "#!lua flags=allow-oom";

/// Does the same for a body that only moves or frees: it also runs when Redis' memory is full.
template <std::size_t... Sizes>
[[nodiscard]] consteval auto moving_script(const char (&... body)[Sizes]) {
    return joined_text(moving_flags, refusal_function, body...);
}

/// Does the same for a body that only reads.
template <std::size_t... Sizes>
[[nodiscard]] consteval auto reading_script(const char (&... body)[Sizes]) {
    return joined_text("#!lua flags=no-writes", refusal_function, body...);
}

/// The Lua function take_headers(list, prefix), for a script that takes over a processing list. It
/// returns the messages of a list; its header, or '' when the rightmost element is none; and the
/// other headers in it. All headers of a consumer begin with `prefix`; without it, the prefix of
/// the rightmost element counts.
///
/// Other headers exist only when a user lost a right in the middle of SETTLE: then the latest one
/// counts, and the messages that they overwrote are settled.
inline constexpr char take_headers_function[] = R"lua(
local function take_headers(list, prefix)
    local oldest = list[#list] or ''
    prefix = prefix or string.match(oldest, '^(orz:%w+:)%d+$')
    local messages, others, latest, number = {}, {}, '', -1
    for _, element in ipairs(list) do
        if prefix and string.sub(element, 1, #prefix) == prefix then
            if element ~= oldest then others[#others + 1] = element end
            local own = tonumber(string.sub(element, #prefix + 1)) or -1
            if own > number then latest, number = element, own end
        else
            messages[#messages + 1] = element
        end
    end
    local known = prefix and string.sub(oldest, 1, #prefix) == prefix
    return messages, known and latest or '', others
end
)lua";

/// The Lua function dead_entry(payload, reason), for a script that has asked for TIME's right. An
/// entry of a dead list is msgpack, byte for byte:
///
///   0x94 0x02                   an array of four, version 2
///   0xc6, 4 bytes of size, …    bin 32: the payload
///   0xc6, 4 bytes of size, …    bin 32: the reason
///   0xcf, 8 bytes               uint 64: milliseconds since 1970
///
/// Sizes and numbers have their highest byte first. As bin, a payload and a reason may be any bytes
/// for every msgpack. Redis' cmsgpack knows no bin: version 1, of older processes, has a str each.
inline constexpr char dead_entry_function[] = R"lua(
local function dead_entry(payload, reason)
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    return '\148\2' .. struct.pack('>BI4', 0xc6, #payload) .. payload ..
        struct.pack('>BI4', 0xc6, #reason) .. reason ..
        struct.pack('>BI4I4', 0xcf, math.floor(now / 2 ^ 32), now % 2 ^ 32)
end
)lua";

// Runs a settlement's body and removes the message in the same step.
//
// KEYS[1] processing; KEYS[2..] the body's; then recoveries, if the message is no suspect any more.
// ARGV[1] header expected, [2] next header, [3] least length, [4] index of the message, and behind
// a space the field of its recoveries, which then ends; [5..] the body's. Returns 1 | STALE (not
// the list it was written for) | REFUSED (by the body) | WRONGTYPE (fenced). The marker is the next
// header: it is fresh, so it cannot be in the list yet.
inline constexpr char before_settling_body[] = R"lua(
local p = KEYS[1]
if redis.call('LINDEX', p, -1) ~= ARGV[1] then return redis.error_reply('STALE header') end
if redis.call('LLEN', p) - 1 < tonumber(ARGV[3]) then return redis.error_reply('STALE length') end
local known, allowed = pcall(function() -- refusal costs more, and this runs with each ack
    local allowed = redis.acl_check_cmd
    return allowed('LSET', p, '0', 'x') and allowed('LREM', p, '0', 'x')
end)
if not known or not allowed then
    return refusal({}, {{'LSET', p, '0', 'x'}, {'LREM', p, '0', 'x'}})
end
local index, counts, field = ARGV[4], #KEYS + 1, string.find(ARGV[4], ' ', 1, true)
if field then
    index, counts, field = string.sub(index, 1, field - 1), #KEYS, string.sub(index, field + 1)
end
local function body(KEYS, ARGV, payload)
)lua";

inline constexpr char behind_settling_body[] = R"lua(
end
local ran, refused = pcall(body, {unpack(KEYS, 2, counts - 1)}, {unpack(ARGV, 5)},
    redis.call('LINDEX', p, index))
if not ran then
    refused = type(refused) == 'table' and refused or {err = tostring(refused)}
    if not string.find(refused.err, '^%u+ ') then refused.err = 'ERR ' .. refused.err end
end
if type(refused) == 'table' and refused.err then
    return redis.error_reply('REFUSED ' .. refused.err)
end
redis.call('LSET', p, index, ARGV[2])
redis.call('LREM', p, -1, ARGV[2])
redis.call('LSET', p, -1, ARGV[2])
if field then redis.pcall('HDEL', KEYS[counts], field, 'charged ' .. field) end
return 1
)lua";

/// The whole script of a body, in one piece or several, that is known to the compiler.
template <std::size_t... Sizes>
[[nodiscard]] consteval auto settling_script(const char (&... body)[Sizes]) {
    return moving_script(before_settling_body, body..., behind_settling_body);
}

} // namespace orizuru::detail
