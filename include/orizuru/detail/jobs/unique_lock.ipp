// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of unique_lock.hpp.

#include <orizuru/connection.hpp>
#include <orizuru/detail/jobs/schedule_source.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/error.hpp>

#include <memory>

namespace orizuru::detail {

ORIZURU_INLINE std::string lock_of(UniqueRelease release, std::string_view job_id) {
    const std::string_view word = release == UniqueRelease::on_ack      ? "ack "
                                  : release == UniqueRelease::on_expiry ? "expiry "
                                                                        : "never ";
    return std::string(word) + std::string(job_id);
}

ORIZURU_INLINE std::string_view push_unique_script() {
    static constexpr auto script = adding_script(R"lua(
local lock = KEYS[5]
local refused = refusal({{lock, 'string'}}, {{'EXISTS', lock}, {'SET', lock, 'x'}})
if refused then return refused end
if redis.call('EXISTS', lock) == 1 then return 0 end
local function schedule(ARGV, payload)
)lua",
                                                 schedule_source, R"lua(
end
refused = schedule({ARGV[1], ARGV[2], ARGV[3]})
if refused then return refused end
if ARGV[5] == '0' then
    redis.call('SET', lock, ARGV[4])
    return 1
end
local wait, time = tonumber(ARGV[2]), redis.call('TIME')
if ARGV[1] == 'at' then wait = wait - time[1] * 1000 - math.floor(time[2] / 1000) end
redis.call('SET', lock, ARGV[4], 'PX', string.format('%d', math.max(wait, 0) + ARGV[5]))
return 1
)lua");
    return script;
}

ORIZURU_INLINE Script unlock_body() {
    static constexpr auto text = settling_script(R"lua(
local lock = KEYS[1]
local refused = refusal({{lock, 'string'}}, {{'GET', lock}, {'DEL', lock}})
if refused then return refused end
if redis.call('GET', lock) == ARGV[1] then redis.call('DEL', lock) end
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

ORIZURU_INLINE Script bury_unlocked_body() {
    static constexpr auto text = settling_script(dead_entry_function, R"lua(
local lock, dead = KEYS[1], KEYS[2]
local refused = refusal({{lock, 'string'}, {dead, 'list'}},
    {{'GET', lock}, {'DEL', lock}, {'LPUSH', dead, 'x'}, {'TIME'}})
if refused then return refused end
redis.call('LPUSH', dead, dead_entry(payload, ARGV[2]))
if redis.call('GET', lock) == ARGV[1] then redis.call('DEL', lock) end
)lua");
    static constinit const CachedScript script(text);
    return constant_script(script);
}

ORIZURU_INLINE std::string_view extend_lock_script() {
    static constexpr auto script = moving_script(R"lua(
local lock = KEYS[1]
local refused = refusal({{lock, 'string'}}, {{'GET', lock}, {'PEXPIRE', lock, '1'}})
if refused then return refused end
local held = redis.call('GET', lock)
for i = 2, #ARGV do
    if held == ARGV[i] then
        redis.call('PEXPIRE', lock, ARGV[1], 'GT')
        return 1
    end
end
return 0
)lua");
    return script;
}

ORIZURU_INLINE std::string lock_key(const std::string& unique_queue, std::string_view unique_id,
                                    const Keys& here) {
    return (unique_queue.empty() ? here : Keys(unique_queue)).unique(unique_id);
}

ORIZURU_INLINE Settlement acking_unique(const GuardCore& guard, const JobLock& lock) {
    if (lock.unique_id.empty()) {
        return guard.acking();
    }
    return guard.settling(unlock_body(),
                          {lock_key(lock.unique_queue, lock.unique_id, guard.keys())},
                          {lock_of(UniqueRelease::on_ack, lock.job_id)});
}

ORIZURU_INLINE Settlement burying_unlocked(const GuardCore& guard, const JobLock& lock,
                                           std::string_view reason) {
    Settlement settlement = guard.settling(
        bury_unlocked_body(),
        {lock_key(lock.unique_queue, lock.unique_id, guard.keys()), guard.keys().dead()},
        {lock_of(UniqueRelease::on_ack, lock.job_id), std::string(reason)});
    settlement.what = "burying";
    settlement.burial = std::make_unique<const std::string>(reason);
    return settlement;
}

ORIZURU_INLINE bool ack_unique(GuardCore& guard, const JobLock& lock) {
    return lock.unique_id.empty() ? guard.ack() : guard.settle(acking_unique(guard, lock));
}

ORIZURU_INLINE bool extend_lock(Connection& connection, const Keys& here, const JobLock& lock,
                                std::chrono::milliseconds ttl) {
    const std::string key = lock_key(lock.unique_queue, lock.unique_id, here);
    return is_yes(connection.command(key, "EVAL", extend_lock_script(), 1, key, ttl.count(),
                                     lock_of(UniqueRelease::on_ack, lock.job_id),
                                     lock_of(UniqueRelease::on_expiry, lock.job_id),
                                     lock_of(UniqueRelease::never, lock.job_id)));
}

ORIZURU_INLINE bool is_yes(const Reply& reply) {
    if (!is_count(reply) || reply.integer > 1) {
        throw ProtocolError("EVAL was answered by a reply of the wrong type");
    }
    return reply.integer == 1;
}

} // namespace orizuru::detail
