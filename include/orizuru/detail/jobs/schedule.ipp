// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of schedule.hpp.

#include <orizuru/detail/jobs/schedule_source.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>

#include <stdexcept>

namespace orizuru::detail {

ORIZURU_INLINE Script schedule_body() {
    static constexpr auto text =
        settling_script("local function schedule(KEYS, ARGV, payload)", schedule_source, R"lua(
end
local refused = schedule(KEYS, {ARGV[1], ARGV[2], ARGV[3]}, payload)
if refused then return refused end
if KEYS[5] and redis.pcall('HEXISTS', KEYS[5], ARGV[4]) == 1 then
    redis.pcall('HSET', KEYS[5], 'charged ' .. ARGV[4], ARGV[5])
end
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

ORIZURU_INLINE std::string_view schedule_script() {
    static constexpr auto script = adding_script("local payload", schedule_source);
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
