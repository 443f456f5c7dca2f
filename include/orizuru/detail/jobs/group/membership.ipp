// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of membership.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/group_ends.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

#include <cstddef>
#include <stdexcept>

namespace orizuru::detail {

inline constexpr std::size_t group_digits = 32;

ORIZURU_INLINE std::string group_field(const Keys& keys, std::string_view group_id) {
    return joined({group_prefix, group_id, ":", keys.source()});
}

ORIZURU_INLINE std::optional<Membership> membership_of(std::string_view group_field,
                                                       std::string_view job_id) {
    constexpr std::size_t before_queue = group_prefix.size() + group_digits + 1;
    if (!group_field.starts_with(group_prefix) || group_field.size() <= before_queue ||
        group_field[before_queue - 1] != ':') {
        return std::nullopt;
    }
    try {
        const Keys keys{std::string(group_field.substr(before_queue))};
        return Membership{keys.group(group_field.substr(group_prefix.size(), group_digits)),
                          joined({"job ", job_id})};
    } catch (const std::invalid_argument&) {
        return std::nullopt; // no queue has such a name
    }
}

ORIZURU_INLINE Settlement acking_member(const GuardCore& guard, const Membership& member) {
    return guard.passing_on(ack_member_body(), {member.group}, {member.field});
}

ORIZURU_INLINE Script ack_member_body() {
    static constexpr auto text = settling_script(group_ends_function, R"lua(
local ends = {}
local refused = note_end(ends, KEYS[1], ARGV[1])
if refused then return refused end
end_noted(ends)
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

ORIZURU_INLINE std::string_view open_group_script() {
    static constexpr auto script = adding_script(R"lua(
local group, groups = unpack(KEYS)
local refused = refusal({{group, 'hash'}, {groups, 'zset'}}, {{'HSET', group, 'x', '1'},
    {'PEXPIRE', group, '1'}, {'EXISTS', group}, {'ZADD', groups, '1', 'x'}, {'ZREM', groups, 'x'},
    {'ZRANGE', groups, '0', '0'}, {'TIME'}})
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', group, 'made', string.format('%.0f', now), unpack(ARGV))
redis.call('PEXPIRE', group, ARGV[2])
local prefix = string.sub(groups, 1, -2) .. ':'
for _, id in ipairs(redis.call('ZRANGE', groups, '-inf', now, 'BYSCORE', 'LIMIT', 0, 100)) do
    if redis.call('EXISTS', prefix .. id) == 0 then
        redis.call('ZREM', groups, id)
    else
        redis.call('ZADD', groups, now + ARGV[2], id)
    end
end
redis.call('ZADD', groups, now + ARGV[2], string.sub(group, -32))
return 1
)lua");
    return script;
}

ORIZURU_INLINE const CachedScript& push_members_script() {
    static constexpr auto text = adding_script(R"lua(
local group, source = unpack(KEYS)
local refused = refusal({{group, 'hash'}, {source, 'list'}}, {{'HMGET', group, 'x'},
    {'HSET', group, 'x', '1'}, {'HINCRBY', group, 'x', '1'}, {'PEXPIRE', group, '1'},
    {'LPUSH', source, 'x'}})
if refused then return refused end
local known = redis.call('HMGET', group, 'open', 'expires')
if not known[1] then return redis.error_reply('CLOSED ' .. group .. ' is not open any more') end
for i = 1, #ARGV, 2 do
    redis.call('HSET', group, 'job ' .. ARGV[i], '')
    redis.call('LPUSH', source, ARGV[i + 1])
end
local count = string.format('%d', #ARGV / 2)
redis.call('HINCRBY', group, 'left', count)
redis.call('HINCRBY', group, 'jobs', count)
redis.call('PEXPIRE', group, known[2])
return 1
)lua");
    static constinit const CachedScript script(text);
    return script;
}

ORIZURU_INLINE std::string_view commit_group_script() {
    static constexpr auto script = moving_script(group_ends_function, R"lua(
local group, ends = KEYS[1], {}
local refused = refusal({{group, 'hash'}}, {{'EXISTS', group}, {'PERSIST', group}})
    or note_end(ends, group, 'open')
if refused then return refused end
if #ends == 0 then return redis.call('EXISTS', group) - 1 end
redis.call('PERSIST', group)
end_noted(ends)
return 1
)lua");
    return script;
}

} // namespace orizuru::detail
