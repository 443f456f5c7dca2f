// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of bounded_push.hpp.

#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/group_ends.hpp>
#include <orizuru/detail/redis/scripts/own_locks.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/error.hpp>

#include <stdexcept>

namespace orizuru::detail {

ORIZURU_INLINE void validate(const QueueBound& bound) {
    if (bound.max_length < 1) {
        throw std::invalid_argument("a queue's max_length must be 1 or more");
    }
}

ORIZURU_INLINE const CachedScript& push_bounded_script() {
    static constexpr auto text =
        adding_script(prefix_of_function, group_ends_function, group_members_function,
                      own_locks_function, oldest_locks_function, R"lua(
local source, most, locks, dropped = KEYS[1], tonumber(ARGV[1]), {}, 0
local refused = refusal({{source, 'list'}},
    {{'LLEN', source}, {'LPUSH', source, 'x'}, {'LTRIM', source, '0', '0'}})
if refused then return refused end
local length = redis.call('LLEN', source)
if length >= most and ARGV[2] == 'refuse' then return {0, 0, length} end
if length >= most then
    refused = refusal({}, {{'LRANGE', source, '0', '0'}})
    if refused then return refused end
    local keyed
    dropped, refused = note_oldest(locks, source, prefix_of(source),
        math.min(length + 1 - most, 1000), function(job)
            keyed = keyed or string.find(job, 'orz%-key:' .. string.rep('%x', 16) .. ':')
            return job
        end)
    if refused then return refused end
    if keyed then
        return redis.error_reply('KEYED the oldest jobs of ' .. source ..
            ' have keys, in whose order others wait for them')
    end
end
length = redis.call('LPUSH', source, ARGV[3])
if dropped > 0 then redis.call('LTRIM', source, 0, -1 - dropped) end
release(locks)
return {1, dropped, length - dropped}
)lua");
    static constinit const CachedScript script(text);
    return script;
}

ORIZURU_INLINE BoundedPush bounded_push(const Reply& reply) {
    const auto& parts = reply.elements;
    if (parts.size() != 3 || !is_count(parts[0]) || !is_count(parts[1]) || !is_count(parts[2])) {
        throw ProtocolError("EVAL was answered by a reply of the wrong type");
    }
    return {parts[0].integer == 1, static_cast<std::uint64_t>(parts[1].integer),
            static_cast<std::uint64_t>(parts[2].integer)};
}

} // namespace orizuru::detail
