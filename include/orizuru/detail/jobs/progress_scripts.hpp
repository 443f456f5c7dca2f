// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The scripts that write a job's progress and its result.

#include <orizuru/connection.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/keys.hpp>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

// KEYS[1] progress; ARGV[1] ttl in ms, [2] fraction, [3] note.
inline constexpr auto set_progress_script = adding_script(R"lua(
local key = KEYS[1]
local refused = refusal({{key, 'hash'}},
    {{'TIME'}, {'HSET', key, 'x', 'x'}, {'PEXPIRE', key, '1'}})
if refused then return refused end
local time = redis.call('TIME')
redis.call('HSET', key, 'fraction', ARGV[2], 'note', ARGV[3],
    'when', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('PEXPIRE', key, ARGV[1])
)lua");

inline constexpr std::size_t longest_progress_note = 1'000;

inline void check_progress(double fraction, std::string_view note) {
    if (!(fraction >= 0 && fraction <= 1)) {
        throw std::invalid_argument("a job's progress must be 0 to 1");
    }
    if (note.size() > longest_progress_note) {
        throw std::invalid_argument("the note on a job's progress has more than 1000 bytes");
    }
}

/// As Progress::set.
inline void write_progress(Connection& connection, const Keys& keys, std::string_view job_id,
                           double fraction, std::string_view note, std::chrono::milliseconds ttl) {
    check_id(job_id);
    check_ttl(ttl);
    check_progress(fraction, note);
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, fraction);
    const std::string key = keys.progress(job_id);
    connection.command(key, "EVAL", set_progress_script, 1, key, ttl.count(),
                       std::string_view(digits, end.ptr), note);
}

// KEYS[1] result; ARGV[1] ttl in ms, [2] its bytes.
inline constexpr auto set_result_script = adding_script(R"lua(
local result = KEYS[1]
local refused = refusal({{result, 'string'}}, {{'SET', result, 'x', 'PX', '1'}})
if refused then return refused end
redis.call('SET', result, ARGV[2], 'PX', ARGV[1])
)lua");

} // namespace orizuru::detail
