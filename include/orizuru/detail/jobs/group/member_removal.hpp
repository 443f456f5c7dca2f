// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Removes a job for people, and counts its end in its group in the same step. It needs no msgpack:
// the script reads the job.

#include <orizuru/connection.hpp>
#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/jobs/group/membership.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/detail/redis/scripts/group_ends.hpp>
#include <orizuru/detail/redis/scripts/own_locks.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/keys.hpp>

#include <string>
#include <string_view>

namespace orizuru::detail {

/// False for nearly all that are no members.
[[nodiscard]] inline bool may_be_member(std::string_view payload) noexcept {
    return payload.find(group_prefix) != std::string_view::npos;
}

// KEYS where the job is; ARGV the element, its payload, what the names of the queue's own keys
// begin with. Returns 1, or 0 when it is not there; FAR as `take`.
inline constexpr auto remove_member_script =
    moving_script(take_entry_function, prefix_of_function, group_ends_function,
                  group_members_function, own_locks_function, R"lua(
local place, locks = KEYS[1], {}
local refused = refusal({}, {{'TYPE', place}})
if refused then return refused end
local scored = redis.call('TYPE', place).ok == 'zset'
refused = refusal({{place, scored and 'zset' or 'list'}}, scored and {{'ZREM', place, 'x'}} or
    {{'LPOS', place, 'x'}, {'LREM', place, '-1', 'x'}, {'LLEN', place}})
    or note_lock(locks, ARGV[2], ARGV[3])
if refused then return refused end
local taken = scored and redis.call('ZREM', place, ARGV[1]) or take(place, ARGV[1])
if taken ~= 1 then return taken end
release(locks)
return 1
)lua");

/// Returns whether the element was there. Throws as Connection::command.
inline bool remove_member(Connection& connection, const std::string& place, std::string_view bytes,
                          std::string_view payload, const Keys& here) {
    const std::string some = here.group("");
    const std::string_view prefix = std::string_view(some).substr(0, some.rfind("group:"));
    return is_yes(
        connection.command(place, "EVAL", remove_member_script, 1, place, bytes, payload, prefix));
}

} // namespace orizuru::detail
