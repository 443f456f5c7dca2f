// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Takes a job out of a list for people, and out of the order of its key: the next one follows in
// the same step.

#include <orizuru/connection.hpp>
#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/jobs/job_in.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/keys.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// The turn that a job has in this queue.
struct KeyTurn {
    std::string key;
    std::string digits;
};
/// Empty when it has none, or is no job.
[[nodiscard]] inline std::optional<KeyTurn> turn_of(std::string_view payload, const Keys& keys) {
    if (payload.find(ticket_prefix) == std::string_view::npos) {
        return std::nullopt; // spares nearly all the decoding
    }
    std::optional<Job<Raw>> job = job_in(payload);
    if (!job || !has_turn({job->key, job->ticket}, keys)) {
        return std::nullopt;
    }
    return KeyTurn{std::move(job->key), std::string(digits_of(job->ticket, keys))};
}

// KEYS source, order, behind, where the job is, and where it goes if it goes to another queue; ARGV
// digits, the element, and its payload there. Returns 1, or 0 when it is not there; FAR as `take`.
inline constexpr auto take_out_of_order_script =
    moving_script(take_entry_function, advance_function, R"lua(
local source, order, behind, place, target = unpack(KEYS)
local next_one, refused = turn(source, order, ARGV[1])
refused = refused or refusal({{source, 'list'}}, {{'TYPE', place}})
if refused then return refused end
local scored = redis.call('TYPE', place).ok == 'zset'
refused = refusal({{place, scored and 'zset' or 'list'}}, scored and {{'ZREM', place, 'x'}} or
    {{'LPOS', place, 'x'}, {'LREM', place, '-1', 'x'}, {'LLEN', place}})
    or target and refusal({{target, 'list'}}, {{'LPUSH', target, 'x'}})
if refused then return refused end
local taken = scored and redis.call('ZREM', place, ARGV[2]) or take(place, ARGV[2])
if taken ~= 1 then return taken end
if target then redis.call('LPUSH', target, ARGV[3]) end
advance(source, order, behind, next_one)
return 1
)lua");

/// Returns whether the element was there. Throws as Connection::command.
inline bool take_out_of_order(Connection& connection, const Keys& keys, const KeyTurn& turn,
                              const std::string& place, std::string_view element) {
    return is_yes(connection.command(place, "EVAL", take_out_of_order_script, 4,
                                     order_keys(keys, turn.key, {place}), turn.digits, element));
}
/// Does the same for one that goes to another queue, with the payload that it has there.
inline bool move_out_of_order(Connection& connection, const Keys& keys, const KeyTurn& turn,
                              const std::string& place, std::string_view element,
                              const Keys& target, std::string_view payload) {
    return is_yes(connection.command(place, "EVAL", take_out_of_order_script, 5,
                                     order_keys(keys, turn.key, {place, target.source()}),
                                     turn.digits, element, payload));
}

} // namespace orizuru::detail
