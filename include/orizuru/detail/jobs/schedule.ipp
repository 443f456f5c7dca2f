// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of schedule.hpp.

#include <orizuru/detail/redis/refusal.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

ORIZURU_INLINE std::string_view schedule_source() {
    return R"lua(
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
}

ORIZURU_INLINE const Script& schedule_body() {
    static const Script script(schedule_source());
    return script;
}

ORIZURU_INLINE const std::string& schedule_script() {
    static const std::string script =
        adding_script("local payload" + std::string(schedule_source()));
    return script;
}

ORIZURU_INLINE std::vector<std::string> due_at(JobTime time) {
    // Redis' scores hold whole numbers up to 2^53, which is far beyond.
    if (time > latest_job_time) {
        throw std::invalid_argument("a message cannot be scheduled beyond the year 9999");
    }
    return {"at", std::to_string(time.time_since_epoch().count())};
}

ORIZURU_INLINE std::vector<std::string> due_after(std::chrono::milliseconds delay) {
    // From any clock that is not centuries ahead.
    if (delay > latest_job_time.time_since_epoch() / 2) {
        throw std::invalid_argument("a message cannot be scheduled beyond the year 9999");
    }
    return {"after", std::to_string(delay.count())};
}

ORIZURU_INLINE std::vector<std::string> schedule_keys(const Keys& keys) {
    return {keys.scheduled(), keys.source(), keys.scheduled_sequence(), keys.scheduled_wake()};
}

} // namespace orizuru::detail
