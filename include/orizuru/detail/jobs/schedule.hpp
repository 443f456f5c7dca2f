// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How a message comes to wait in a queue's scheduled set, by a producer's script or in the step
// that settles it, and how what is due goes to the source.
//
// An element is 8 bytes of a number, then the message: so equal messages stay two, and those of one
// due time keep their order. The number alone would not do: an emptied Redis begins anew.

#include <orizuru/detail/redis/refusal.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/script.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

// KEYS[1] scheduled, [2] the list that it is for, [3] sequence, [4] wake.
// ARGV[1] 'at' | 'after', [2] milliseconds since 1970 | from now, [3] the message, when it is not
// `payload`. Returns an error or nothing; needs the function refusal.
inline constexpr std::string_view schedule_source = R"lua(
local scheduled, list, sequence, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local refused = refusal(
    {{scheduled, 'zset'}, {list, 'list'}, {sequence, 'string'}, {wake, 'list'}},
    {{'TIME'}, {'LPUSH', list, 'x'}, {'ZRANGE', scheduled, '0', '0'},
        {'ZADD', scheduled, '0', 'x'}, {'INCR', sequence}, {'DEL', wake}, {'LPUSH', wake, 'x'}})
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = tonumber(ARGV[2])
if ARGV[1] == 'after' then due = now + due end
local message = ARGV[3] or payload
if due <= now then
    redis.call('LPUSH', list, message)
    return
end
local first = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
repeat
    local number = redis.call('INCR', sequence)
until redis.call('ZADD', scheduled, 'NX', due, struct.pack('>I8', number) .. message) == 1
if not first or due < tonumber(first) then
    redis.call('DEL', wake)
    redis.call('LPUSH', wake, '')
end
)lua";

inline const Script& schedule_body() {
    static const Script script(schedule_source);
    return script;
}

/// The same for a producer: refused when Redis is full.
inline const std::string& schedule_script() {
    static const std::string script = adding_script("local payload" + std::string(schedule_source));
    return script;
}

// What one step moves: no more messages, and no more bytes unless one message has more, so that a
// step never holds up Redis for long.
inline constexpr int most_moved = 100;
inline constexpr int most_bytes_moved = 1 << 20;

// KEYS[1] scheduled, [2] source, [3] schedulers; ARGV[1] the most messages that one step moves, [2]
// the most bytes, [3] own id, [4] how long the others may go unheard. Returns how many it has
// moved, in how many milliseconds the next is due (-1: there is none), and how many schedulers
// there are. Looks at one message after the other: what is fetched together takes its memory at
// once.
inline const std::string& move_due_script() {
    static const std::string script = moving_script(R"lua(
local scheduled, source, schedulers = unpack(KEYS)
local refused = refusal({{scheduled, 'zset'}, {source, 'list'}, {schedulers, 'zset'}},
    {{'TIME'}, {'ZRANGE', scheduled, '0', '0'}, {'LPUSH', source, 'x'},
        {'ZREMRANGEBYRANK', scheduled, '0', '0'}, {'ZADD', schedulers, '0', 'x'},
        {'ZREMRANGEBYSCORE', schedulers, '0', '0'}, {'ZCARD', schedulers}})
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local most, most_bytes = tonumber(ARGV[1]), tonumber(ARGV[2])
local messages, bytes = {}, 0
local function look()
    return unpack(redis.call('ZRANGE', scheduled, #messages, #messages, 'WITHSCORES'))
end
local element, due = look()
while element and tonumber(due) <= now and #messages < most
        and (#messages == 0 or bytes + #element <= most_bytes) do
    bytes = bytes + #element
    messages[#messages + 1] = string.sub(element, 9)
    element, due = look()
end
if #messages > 0 then
    redis.call('LPUSH', source, unpack(messages))
    redis.call('ZREMRANGEBYRANK', scheduled, 0, #messages - 1)
end
redis.call('ZADD', schedulers, now, ARGV[3])
redis.call('ZREMRANGEBYSCORE', schedulers, '-inf', now - ARGV[4])
local wait = element and math.max(0, tonumber(due) - now) or -1
return {#messages, wait, redis.call('ZCARD', schedulers)}
)lua");
    return script;
}

/// The arguments of the script: a moment, or a time from now, by Redis' clock.
[[nodiscard]] inline std::vector<std::string> due_at(JobTime time) {
    // Redis' scores hold whole numbers up to 2^53, which is far beyond.
    if (time > latest_job_time) {
        throw std::invalid_argument("a message cannot be scheduled beyond the year 9999");
    }
    return {"at", std::to_string(time.time_since_epoch().count())};
}
[[nodiscard]] inline std::vector<std::string> due_after(std::chrono::milliseconds delay) {
    // From any clock that is not centuries ahead.
    if (delay > latest_job_time.time_since_epoch() / 2) {
        throw std::invalid_argument("a message cannot be scheduled beyond the year 9999");
    }
    return {"after", std::to_string(delay.count())};
}

[[nodiscard]] inline std::vector<std::string> schedule_keys(const Keys& keys) {
    return {keys.scheduled(), keys.source(), keys.scheduled_sequence(), keys.scheduled_wake()};
}

} // namespace orizuru::detail
