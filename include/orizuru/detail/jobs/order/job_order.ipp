// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of job_order.hpp.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/detail/jobs/schedule_source.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/script.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace orizuru::detail {

ORIZURU_INLINE std::string make_ticket(const Keys& keys) {
    return ticket_of(random_hex(ticket_digits), keys);
}

ORIZURU_INLINE std::string ticket_of(std::string_view digits, const Keys& keys) {
    return joined({ticket_prefix, digits, ":", keys.source()});
}

ORIZURU_INLINE std::string_view digits_of(std::string_view ticket, const Keys& keys) noexcept {
    constexpr std::size_t before_queue = ticket_prefix.size() + ticket_digits + 1;
    const bool is_its = ticket.size() > before_queue && ticket.starts_with(ticket_prefix) &&
                        ticket[before_queue - 1] == ':' &&
                        ticket.substr(before_queue) == keys.source();
    return is_its ? ticket.substr(ticket_prefix.size(), ticket_digits) : std::string_view();
}

ORIZURU_INLINE std::vector<std::string> order_keys(const Keys& keys, std::string_view key,
                                                   const std::vector<std::string>& more) {
    std::vector<std::string> all{keys.source(), keys.order(key), keys.keyed()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

ORIZURU_INLINE bool has_turn(const OrderedJob& job, const Keys& keys) noexcept {
    return !job.key.empty() && !digits_of(job.ticket, keys).empty();
}

ORIZURU_INLINE Script ack_in_order_body() {
    static constexpr auto text = settling_script(advance_function, R"lua(
local source, order, behind = unpack(KEYS)
local next_one, refused = turn(source, order, ARGV[1])
return refused or advance(source, order, behind, next_one)
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

ORIZURU_INLINE Script bury_in_order_body() {
    static constexpr auto text = settling_script(advance_function, dead_entry_function, R"lua(
local source, order, behind, dead = unpack(KEYS)
local next_one, refused = turn(source, order, ARGV[1])
refused = refused or refusal({{dead, 'list'}}, {{'LPUSH', dead, 'x'}, {'TIME'}})
    or advance(source, order, behind, next_one)
if refused then return refused end
redis.call('LPUSH', dead, dead_entry(ARGV[3], ARGV[2]))
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

ORIZURU_INLINE Script leave_order_body() {
    static constexpr auto text = settling_script(
        advance_function, "local function schedule(KEYS, ARGV, payload)", schedule_source, R"lua(
end
local source, order, behind = KEYS[1], KEYS[2], KEYS[3]
local next_one, refused = turn(source, order, ARGV[1])
refused = refused or refusal({{source, 'list'}}, {})
    or schedule({unpack(KEYS, 4)}, {unpack(ARGV, 2)})
return refused or advance(source, order, behind, next_one)
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

ORIZURU_INLINE Script defer_in_burst_body() {
    static constexpr auto text = settling_script(
        advance_function, "local function schedule(KEYS, ARGV, payload)", schedule_source, R"lua(
end
local source, order, behind = KEYS[1], KEYS[2], KEYS[3]
local next_one, refused = turn(source, order, ARGV[1])
if not next_one then return refused end
if moved then
    return refusal({{source, 'list'}}, {}) or advance(source, order, behind, next_one)
end
refused = schedule({unpack(KEYS, 4)}, {unpack(ARGV, 2)})
if refused then return refused end
pass_turn(order, behind, next_one)
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

ORIZURU_INLINE Script enter_order_body() {
    static constexpr auto text = settling_script(R"lua(
local source, order, behind = unpack(KEYS)
local refused = refusal({{source, 'list'}, {order, 'list'}},
    {{'EXISTS', order}, {'RPUSH', order, 'x'}, {'RPUSH', source, 'x'}})
if refused then return refused end
local key = string.sub(order, #behind)
if redis.call('EXISTS', order) == 1 then
    redis.call('RPUSH', order, ARGV[1] .. ARGV[2])
    redis.pcall('ZINCRBY', behind, 1, key)
    redis.pcall('ZINCRBY', behind, -1, '')
else
    redis.pcall('ZINCRBY', behind, 0, key)
    redis.call('RPUSH', order, ARGV[1])
    redis.call('RPUSH', source, ARGV[2])
end
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

ORIZURU_INLINE const CachedScript& push_in_order_script() {
    static constexpr auto text = adding_script(R"lua(
local source, order, behind = unpack(KEYS)
local refused = refusal({{source, 'list'}, {order, 'list'}, {behind, 'zset'}}, {{'LLEN', order},
    {'RPUSH', order, 'x'}, {'LPUSH', source, 'x'}, {'ZINCRBY', behind, '1', 'x'}})
if refused then return refused end
local first = 1
if redis.call('LLEN', order) == 0 then
    redis.call('RPUSH', order, ARGV[1])
    redis.call('LPUSH', source, ARGV[2])
    first = 3
end
for i = first, #ARGV, 2 do redis.call('RPUSH', order, ARGV[i] .. ARGV[i + 1]) end
local more = (#ARGV - first + 1) / 2
redis.call('ZINCRBY', behind, more, string.sub(order, #behind))
if more > 0 then redis.call('ZINCRBY', behind, -more, '') end
return redis.call('LLEN', order)
)lua");
    static constinit const CachedScript script(text);
    return script;
}

[[nodiscard]] inline std::string unlimited(const Job<Raw>& job) {
    return encoded(job, std::numeric_limits<std::int64_t>::max());
}

ORIZURU_INLINE std::string without_ticket(std::string_view payload) {
    Scratch scratch;
    auto job = decode<Job<Raw>>(payload, scratch);
    job.ticket.clear();
    return unlimited(job);
}

/// Adds the job's turn to the settlement: `ends` is 0 if it only ends those of its burst before it.
inline Settlement in_turn(const GuardCore& guard, const OrderedJob& job, Settlement settlement,
                          int ends = 1) {
    std::string turn(digits_of(job.ticket, guard.keys()));
    if (const Burst* const burst = guard.burst()) {
        turn = joined({burst->first, " ", std::to_string(burst->done + ends), " ",
                       std::to_string(burst->done), " ", turn});
        settlement.move->keys.push_back(guard.keys().burst(job.key));
    }
    settlement.move->args.insert(settlement.move->args.begin(), std::move(turn));
    return settlement;
}

ORIZURU_INLINE Settlement acking_in_order(const GuardCore& guard, const OrderedJob& job) {
    return in_turn(guard, job,
                   guard.passing_on(ack_in_order_body(), order_keys(guard.keys(), job.key), {}));
}

ORIZURU_INLINE Settlement acking_job(const GuardCore& guard, const JobLock& lock,
                                     const OrderedJob& job, std::string_view group) {
    if (has_turn(job, guard.keys())) {
        return acking_in_order(guard, job);
    }
    const auto member = membership_of(group, lock.job_id);
    return member ? acking_member(guard, *member) : acking_unique(guard, lock);
}

ORIZURU_INLINE Settlement burying_in_order(const GuardCore& guard, const OrderedJob& job,
                                           std::string_view reason) {
    const Keys& keys = guard.keys();
    Settlement settlement =
        in_turn(guard, job,
                guard.putting_off(bury_in_order_body(), order_keys(keys, job.key, {keys.dead()}),
                                  {std::string(reason), without_ticket(guard.payload())}));
    settlement.what = "burying";
    settlement.burial = std::make_unique<const std::string>(reason);
    return settlement;
}

ORIZURU_INLINE Settlement leaving_order(const GuardCore& guard, const OrderedJob& job,
                                        const Keys& target, std::vector<std::string> due) {
    return in_turn(guard, job,
                   guard.putting_off(leave_order_body(),
                                     order_keys(guard.keys(), job.key, schedule_keys(target)),
                                     std::move(due)));
}

ORIZURU_INLINE Settlement deferring_in_burst(const GuardCore& guard, const OrderedJob& job,
                                             const std::vector<std::string>& keys,
                                             std::vector<std::string> due) {
    return in_turn(guard, job,
                   guard.putting_off(defer_in_burst_body(), order_keys(guard.keys(), job.key, keys),
                                     std::move(due)),
                   0);
}

ORIZURU_INLINE Settlement releasing_job(const GuardCore& guard, const OrderedJob& job,
                                        std::string replacement) {
    if (const Burst* const burst = guard.burst(); burst != nullptr && burst->done > 0) {
        return deferring_in_burst(
            guard, job, schedule_keys(guard.keys()),
            {"after", "0",
             replacement.empty() ? std::string(burst->payload) : std::move(replacement)});
    }
    return replacement.empty() ? guard.releasing() : guard.releasing(std::move(replacement));
}

ORIZURU_INLINE Settlement entering_order(const GuardCore& guard, std::string_view key) {
    const Keys& keys = guard.keys();
    Scratch scratch;
    auto job = decode<Job<Raw>>(guard.payload(), scratch);
    job.ticket = make_ticket(keys);
    return guard.putting_off(enter_order_body(), order_keys(keys, key),
                             {std::string(digits_of(job.ticket, keys)), unlimited(job)});
}

} // namespace orizuru::detail
