// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The numbers of queues, of up to 100 in one script: a monitor may look at thousands.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/jobs/due_time.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/ops/inspector_scripts.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/detail/shards/shard_scripts.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/ops/queue_state.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace orizuru::detail {

/// Redis' time; nothing for a user without the right to it.
[[nodiscard]] inline std::optional<JobTime> clock_of(Connection& connection,
                                                     const std::string& queue) {
    try {
        const Reply reply = connection.command(queue, "TIME");
        const auto part = [&](std::size_t index) {
            return static_cast<std::int64_t>(whole_number(reply.elements[index].text).value_or(0));
        };
        if (!is_strings(reply) || reply.elements.size() != 2) {
            refuse(connection, "TIME");
        }
        return JobTime(std::chrono::milliseconds(part(0) * 1000 + part(1) / 1000));
    } catch (const ReplyError& error) {
        if (error.code() != "NOPERM") {
            throw;
        }
        return std::nullopt;
    }
}

inline constexpr std::size_t most_queues_together = 100;

// KEYS for each queue source, unack, scheduled, dead, consumers, paused, suspects, keyed, groups,
// slots, slots:freed, rate;
// ARGV how many bytes of the message that is served next; then for each queue the prefixes of its
// processing lists, heartbeats and groups, and the key of its collectors' turns. Returns for each
// {waiting, held, scheduled, rejected, suspected, dead, consumers, how many of them are unheard,
// paused, whether the rejected ones are collected, keys, how many wait behind them, groups, how
// many members these have (-1: there are too many groups), slots that are taken, whether none is
// free (0 or 1), for how many ms its rate has no permit, that message's beginning, first due or
// ''}; nil for one that it refuses, if there are others. It ends behind the queue with the 1000th
// consumer or group: O(queues + consumers + groups).
inline constexpr auto queue_states_script =
    reading_script(held_list_function, retired_function, R"lua(
local seen = 0
local function open_groups(groups, prefix)
    local count, members = redis.call('ZCARD', groups), 0
    if count > 1000 then return count, -1 end
    seen, count = seen + count, 0
    for _, id in ipairs(redis.call('ZRANGE', groups, 0, -1)) do
        local group = prefix .. id
        local known = redis.call('TYPE', group).ok == 'hash' and
            redis.call('HMGET', group, 'left', 'open') or {}
        local left = tonumber(known[1] or '') or 0
        if left > 0 then
            count, members = count + 1, members + left - (known[2] and 1 or 0)
        end
    end
    return count, members
end
local function permit_in(rate)
    local next_one = tonumber(string.match(redis.call('GET', rate) or '', '^%d+') or 0)
    local time = next_one > 0 and redis.pcall('TIME') or {0, 0}
    return time.err and 0 or math.max(math.ceil((next_one - time[1] * 1000000 - time[2]) / 1000), 0)
end
local function state(source, unack, scheduled, dead, consumers, paused, suspects, keyed, groups,
    slots, freed, rate, processing, heartbeat, group_prefix, collected)
    local refused = refusal({{unack, 'list'}, {scheduled, 'zset'}, {dead, 'list'},
        {consumers, 'set'}, {suspects, 'list'}, {keyed, 'zset'}, {groups, 'zset'},
        {slots, 'zset'}, {freed, 'list'}, {rate, 'string'}},
        {{'TYPE', source}, {'GET', source},
        {'LLEN', source}, {'LINDEX', source, '-1'}, {'LLEN', unack}, {'ZCARD', scheduled},
        {'ZRANGE', scheduled, '0', '0'}, {'LLEN', dead}, {'SMEMBERS', consumers},
        {'EXISTS', paused}, {'LLEN', suspects}, {'ZCARD', keyed}, {'ZSCORE', keyed, 'x'},
        {'ZCARD', groups}, {'HMGET', groups, 'x'}, {'ZCARD', slots}, {'LLEN', freed},
        {'GET', rate}})
    if refused then return refused end
    local kind = redis.call('TYPE', source).ok
    local gone = kind == 'string' and retired(source)
    if not gone and kind ~= 'list' and kind ~= 'none' then return refusal({{source, 'list'}}, {}) end
    local ids, held, unheard = redis.call('SMEMBERS', consumers), 0, 0
    for _, id in ipairs(ids) do
        held = held + held_list(processing, id)
        unheard = unheard + 1 - redis.call('EXISTS', heartbeat .. id)
    end
    seen = seen + #ids
    local rejected = redis.call('LLEN', unack)
    local next_served = not gone and redis.call('LINDEX', source, -1) or ''
    local behind = redis.call('ZSCORE', keyed, '')
    local count, members = open_groups(groups, group_prefix)
    local due = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2] or ''
    return {gone and 0 or redis.call('LLEN', source), held, redis.call('ZCARD', scheduled),
        rejected, redis.call('LLEN', suspects), redis.call('LLEN', dead), #ids, unheard,
        redis.call('EXISTS', paused), rejected == 0 and 1 or redis.call('EXISTS', collected),
        redis.call('ZCARD', keyed) - (behind and 1 or 0), math.max(-(behind or 0), 0), count,
        members, redis.call('ZCARD', slots), redis.call('LLEN', freed) == 0 and 1 or 0,
        permit_in(rate), string.sub(next_served, 1, ARGV[1]), due}
end
local found = {}
for i = 1, #KEYS / 12 do
    local its = {unpack(KEYS, 12 * i - 11, 12 * i)}
    for a = 4 * i - 2, 4 * i + 1 do its[#its + 1] = ARGV[a] end
    local one = state(unpack(its))
    if one.err and #KEYS == 12 then return one end
    found[i] = not one.err and one
    if seen >= 1000 then break end
end
return found
)lua");

/// Asks for the numbers of queues that have one connection; returns those of the first ones, at
/// least of one, with nothing where Redis refuses a queue. Throws as Connection does, also when it
/// refuses the only one.
[[nodiscard]] inline std::vector<std::optional<QueueState>>
queue_states(Connection& connection, std::span<const Keys> queues) {
    const Reply reply =
        exchange(connection, queues.front().source(), "EVAL_RO", [&](std::string& out) {
            begin_command(out, 4 + 16 * queues.size());
            append_argument(out, "EVAL_RO");
            append_argument(out, queue_states_script);
            append_argument(out, 12 * queues.size());
            for (const Keys& keys : queues) {
                append_argument(out, keys.source());
                append_argument(out, keys.unack());
                append_argument(out, keys.scheduled());
                append_argument(out, keys.dead());
                append_argument(out, keys.consumers());
                append_argument(out, keys.paused());
                append_argument(out, keys.suspects());
                append_argument(out, keys.keyed());
                append_argument(out, keys.groups());
                append_argument(out, keys.slots_taken());
                append_argument(out, keys.slots_freed());
                append_argument(out, keys.queue_rate());
            }
            append_argument(out, longest_envelope_start);
            for (const Keys& keys : queues) {
                append_argument(out, keys.processing(""));
                append_argument(out, keys.heartbeat(""));
                append_argument(out, keys.group(""));
                append_argument(out, keys.collected());
            }
        });
    const std::size_t size = reply.elements.size();
    if (!reply.is(Reply::Type::array) || size == 0 || size > queues.size()) {
        refuse(connection, "EVAL_RO");
    }
    std::vector<std::optional<QueueState>> found;
    for (const Reply& one : reply.elements) {
        const std::vector<Reply>& parts = one.elements;
        const std::string& queue = queues[found.size()].source();
        if (one.is(Reply::Type::nil) && queues.size() > 1) {
            found.emplace_back();
            continue;
        }
        const auto is_number = [](const Reply& part) { return is_count(part); };
        if (parts.size() != 19 || !std::all_of(parts.begin(), parts.begin() + 13, is_number) ||
            !is_count(parts[13], -1) ||
            !std::all_of(parts.begin() + 14, parts.begin() + 17, is_number) ||
            !parts[17].is(Reply::Type::string) || !parts[18].is(Reply::Type::string)) {
            refuse(connection, "EVAL_RO");
        }
        const auto count = [&](std::size_t part) {
            return static_cast<std::uint64_t>(parts[part].integer);
        };
        QueueState& state = found
                                .emplace_back(QueueState{.queue = queue,
                                                         .waiting = count(0),
                                                         .held = count(1),
                                                         .scheduled = count(2),
                                                         .rejected = count(3),
                                                         .suspected = count(4),
                                                         .dead = count(5),
                                                         .consumers = count(6),
                                                         .unheard = count(7),
                                                         .paused = count(8) > 0,
                                                         .uncollected = count(9) == 0,
                                                         .oldest = envelope_time(parts[17].text),
                                                         .keys = count(10),
                                                         .behind = count(11),
                                                         .groups = count(12),
                                                         .slots_taken = count(14)})
                                .value();
        state.members = parts[13].integer < 0 ? std::nullopt : std::optional(count(13));
        if (!parts[18].text.empty()) {
            state.next_due = due_time(parts[18].text);
        }
        if (state.waiting > 0) {
            state.waits_for = state.slots_taken > 0 && count(15) > 0 ? LimitWait::slot
                              : count(16) > 0                        ? LimitWait::permit
                                                                     : LimitWait::nothing;
        }
    }
    return found;
}

} // namespace orizuru::detail
