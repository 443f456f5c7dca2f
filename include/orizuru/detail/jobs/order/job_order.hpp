// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The order of a queue's jobs that have a key (keyed.hpp). At most one job of each key is in the
// queue or beyond it: held, put off, rejected, suspected. The others wait in the list Keys::order.
// The step that ends the job brings the next one into the queue; a step that only moves the job
// keeps its turn, so the key waits.
//
// A ticket is `orz-key:`, 16 random hexadecimal digits, `:`, and the queue's name. While its job is
// out, its digits stand first in the key's list. A script that ends a job with other digits removes
// that job, and brings none. A job that was redriven, or pushed by others, has no ticket of its
// queue, and gets one when it is fetched.
//
// A burst (KeyedOptions) is handled while its first job is out: the others stay in the key's list,
// so a death leaves nothing but the first to be recovered. One script ends those that are done, if
// the first has its turn; where the one behind them fails, it gets the turn.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/jobs/group/membership.hpp>
#include <orizuru/detail/jobs/unique_lock.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/script.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

inline constexpr std::string_view ticket_prefix = "orz-key:";
inline constexpr std::size_t ticket_digits = 16;

[[nodiscard]] std::string make_ticket(const Keys& keys);
/// Returns the ticket with these digits.
[[nodiscard]] std::string ticket_of(std::string_view digits, const Keys& keys);
/// The digits of a ticket of this queue, a view of it; empty: it is none.
[[nodiscard]] std::string_view digits_of(std::string_view ticket, const Keys& keys) noexcept;

/// KEYS of the scripts: the source, the key's list, how many wait behind which key (Keys::keyed),
/// and `more`.
[[nodiscard]] std::vector<std::string> order_keys(const Keys& keys, std::string_view key,
                                                  const std::vector<std::string>& more = {});

/// A job as the order needs to know it.
struct OrderedJob {
    std::string_view key;    ///< empty: it has none
    std::string_view ticket; ///< perhaps of another queue
};
/// It has a turn in this queue, which ends with it.
[[nodiscard]] bool has_turn(const OrderedJob& job, const Keys& keys) noexcept;

// Settlements of a job that has its turn. Each brings the next job of the key into the queue.

[[nodiscard]] Settlement acking_in_order(const GuardCore& guard, const OrderedJob& job);
/// Does that for one that has its turn, counts the end of a member of a group
/// (group/membership.hpp), and acks and unlocks any other (unique_lock.hpp).
[[nodiscard]] Settlement acking_job(const GuardCore& guard, const JobLock& lock,
                                    const OrderedJob& job, std::string_view group);
/// The entry on the dead list has no ticket.
[[nodiscard]] Settlement burying_in_order(const GuardCore& guard, const OrderedJob& job,
                                          std::string_view reason);
/// Releases it, or what replaces it; one of a burst goes to the queue's other end.
[[nodiscard]] Settlement releasing_job(const GuardCore& guard, const OrderedJob& job,
                                       std::string replacement = {});
/// Puts one of a burst, which gets the turn, where `keys` and `due` say (schedule.hpp).
[[nodiscard]] Settlement deferring_in_burst(const GuardCore& guard, const OrderedJob& job,
                                            const std::vector<std::string>& keys,
                                            std::vector<std::string> due);
/// Puts it off in another queue (schedule.hpp), where it has no ticket. `due` as there, with the
/// payload behind it.
[[nodiscard]] Settlement leaving_order(const GuardCore& guard, const OrderedJob& job,
                                       const Keys& target, std::vector<std::string> due);

/// Gives a job a ticket: it is served next if no other of its key is out, and waits behind them
/// otherwise.
[[nodiscard]] Settlement entering_order(const GuardCore& guard, std::string_view key);

// Their scripts. KEYS are order_keys, then what is named here, then Keys::burst for jobs of a
// burst: then the digits are those of its first job, and behind them stand, with spaces, how many
// jobs end, how many stand before the one that is settled, and the digits of that one. Where it
// stands there no more (Redis has forgotten a push, or somebody has changed the list), only the
// first ends: the others are brought anew.

/// ARGV digits
[[nodiscard]] Script ack_in_order_body();
/// KEYS dead; ARGV digits, reason, the payload without its ticket
[[nodiscard]] Script bury_in_order_body();
/// KEYS those of schedule.hpp; ARGV digits, then those of schedule.hpp
[[nodiscard]] Script leave_order_body();
/// KEYS those of schedule.hpp; ARGV digits, then those of schedule.hpp with a payload: only for the
/// job behind those that end
[[nodiscard]] Script defer_in_burst_body();
/// ARGV digits, the job with its ticket
[[nodiscard]] Script enter_order_body();

/// For a producer: the digits of a ticket and a job with it, by turns. Refused when Redis' memory
/// is full. Returns how many jobs of the key there are now.
[[nodiscard]] const CachedScript& push_in_order_script();

/// The payload of a job without its ticket, and without a limit of its size. Throws as decoding.
[[nodiscard]] std::string without_ticket(std::string_view payload);

/// The Lua functions turn(source, order, digits), which reads, and advance(source, order, behind,
/// next_one), which writes, as pass_turn does for what is not to be pushed. They need the function
/// refusal, and run with each ack: so refusal only says what is missing when something is.
///
/// turn returns the element behind the job with these digits, if it is its turn: '' where there is
/// none, nothing if it is another one's turn. Then an error or nothing: a script returns the error
/// before its first write.
///
/// advance returns an error of its own first write, or nothing: so it comes before the other writes
/// of a script. Where the numbers of those behind cannot be changed, they stay as they are.
inline constexpr char advance_function[] = R"lua(
local ends, mark, moved = 1
local function turn(source, order, digits)
    local before, own
    if #digits > 16 then
        digits, ends, before, own = string.match(digits, '^(%x+) (%d+) (%d+) (%x+)$')
        ends, mark = tonumber(ends), KEYS[#KEYS]
        local refused = refusal({}, {{'DEL', mark}})
        if refused then return nil, refused end
    end
    local allowed = redis.acl_check_cmd
    local known, all = pcall(function()
        return allowed('LRANGE', order, '0', '1') and allowed('LPOP', order) and
            allowed('LSET', order, '0', 'x') and allowed('LPUSH', source, 'x')
    end)
    if not known or not all then
        return nil, refusal({}, {{'LRANGE', order, '0', '1'}, {'LPOP', order},
            {'LSET', order, '0', 'x'}, {'LPUSH', source, 'x'}})
    end
    local two = redis.pcall('LRANGE', order, 0, 1)
    if two.err then return nil, two end
    if two[1] ~= digits then return end
    if own then
        local there = redis.call('LRANGE', order, before, before)[1] or ''
        moved = string.sub(there, 1, 16) ~= own
        if moved then ends = 1 end
    end
    return (ends == 1 and two[2] or redis.call('LRANGE', order, ends, ends)[1]) or ''
end
local function pass_turn(order, behind, next_one)
    local key = string.sub(order, #behind) -- of one queue, `key:` is a letter less than `keyed`
    redis.call('LPOP', order, ends)
    if next_one == '' then
        redis.pcall('ZREM', behind, key)
    else
        redis.call('LSET', order, 0, string.sub(next_one, 1, 16))
        redis.pcall('ZINCRBY', behind, -ends, key)
    end
    local fewer = next_one == '' and ends - 1 or ends
    if fewer > 0 then redis.pcall('ZINCRBY', behind, fewer, '') end
    if mark then redis.call('DEL', mark) end
end
local function advance(source, order, behind, next_one)
    if not next_one then return end
    if next_one ~= '' then
        local pushed = redis.pcall('LPUSH', source, string.sub(next_one, 17))
        if type(pushed) == 'table' then return pushed end
    end
    pass_turn(order, behind, next_one)
end
)lua";

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/jobs/order/job_order.ipp>
#endif
