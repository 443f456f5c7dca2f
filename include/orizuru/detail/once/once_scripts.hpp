// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The scripts that make, renew and end a claim in Redis. A record is a hash: `state` is claimed or
// done, `fence` the token of the latest claim, `until` the end of its lease in ms since 1970,
// `nonce` the call that made it, `result` what was stored. A claim whose lease is over is still the
// latest until another one comes: nobody has begun since.
//
// A token is the server's time in microseconds, or one more than the last: so tokens go on rising
// when Redis is emptied. Lua's numbers hold it until the year 2255.

#include <orizuru/detail/redis/scripts/cached_script.hpp>
#include <orizuru/detail/redis/scripts/script_parts.hpp>
#include <orizuru/script.hpp>

namespace orizuru::detail {

// KEYS[1] record, [2] fences; ARGV[1] lease in ms, [2] for how long it is remembered, in ms, [3]
// the call's nonce. Returns claimed and its token | busy, until when and for how long | done and
// its result. A call that is repeated gets its own claim again.
inline constexpr auto claim_script = adding_script(R"lua(
local record, fences, call = KEYS[1], KEYS[2], ARGV[3]
local refused = refusal({{record, 'hash'}, {fences, 'string'}},
    {{'TIME'}, {'HMGET', record, 'x'}, {'HSET', record, 'x', 'x'}, {'PEXPIRE', record, '1'},
        {'GET', fences}, {'SET', fences, 'x'}})
if refused then return refused end
local state, fence, ends, nonce, result =
    unpack(redis.call('HMGET', record, 'state', 'fence', 'until', 'nonce', 'result'))
if state == 'done' then return {'done', result} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if nonce ~= call then
    local left = (tonumber(ends) or 0) - now
    if left > 0 then return {'busy', tonumber(ends), left} end
    local last = tonumber(redis.call('GET', fences) or 0)
    if not last then return redis.error_reply('ERR ' .. fences .. ' is no number') end
    fence = string.format('%d', math.max(last + 1, time[1] * 1000000 + time[2]))
    redis.call('SET', fences, fence)
end
redis.call('HSET', record, 'state', 'claimed', 'fence', fence,
    'until', string.format('%d', now + ARGV[1]), 'nonce', call)
redis.call('PEXPIRE', record, string.format('%d', ARGV[1] + ARGV[2]))
return {'claimed', fence}
)lua");

// KEYS[1] record; ARGV[1] token, [2] for how long it is remembered, in ms, [3] the result, if any.
// An error FENCED when the token is not the latest; nothing when it is done. Needs the function
// refusal.
inline constexpr char complete_claim_source[] = R"lua(
local record = KEYS[1]
local refused = refusal({{record, 'hash'}}, {{'HMGET', record, 'x'}, {'HSET', record, 'x', 'x'},
    {'HDEL', record, 'x'}, {'PEXPIRE', record, '1'}})
if refused then return refused end
local state, fence = unpack(redis.call('HMGET', record, 'state', 'fence'))
if fence ~= ARGV[1] then
    return redis.error_reply('FENCED ' .. record .. ' is not held by this token any more')
end
if state == 'done' then return end
redis.call('HSET', record, 'state', 'done')
if ARGV[3] then redis.call('HSET', record, 'result', ARGV[3]) end
redis.call('HDEL', record, 'until', 'nonce')
redis.call('PEXPIRE', record, ARGV[2])
)lua";

/// In one step with the message's removal.
inline Script complete_claim_body() {
    static constexpr auto text = settling_script(complete_claim_source);
    static constinit const CachedScript script(text);
    return constant_script(script);
}

/// Returns 1, or 0 when the token is not the latest.
inline constexpr auto complete_claim_script =
    moving_script("local function complete()", complete_claim_source, R"lua(
end
local refused = complete()
if not refused then return 1 end
return string.find(refused.err, '^FENCED ') and 0 or refused
)lua");

// KEYS[1] record; ARGV[1] token. Returns 1, or 0 when the token is not the latest, or done.
inline constexpr auto release_claim_script = moving_script(R"lua(
local record = KEYS[1]
local refused = refusal({{record, 'hash'}}, {{'HMGET', record, 'x'}, {'DEL', record}})
if refused then return refused end
local state, fence = unpack(redis.call('HMGET', record, 'state', 'fence'))
if fence ~= ARGV[1] or state == 'done' then return 0 end
return redis.call('DEL', record)
)lua");

// KEYS records; ARGV[1] lease in ms, [2] for how long they are remembered, in ms, [3..] their
// tokens. Returns the tokens that are over.
inline constexpr auto renew_claims_script = moving_script(R"lua(
local refused = refusal({}, {{'TIME'}})
if refused then return refused end
for _, record in ipairs(KEYS) do
    refused = refusal({}, {{'TYPE', record}, {'HMGET', record, 'x'}, {'HSET', record, 'x', 'x'},
        {'PEXPIRE', record, '1'}})
    if refused then return refused end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local over = {}
for i, record in ipairs(KEYS) do
    local state, fence
    if redis.call('TYPE', record).ok == 'hash' then
        state, fence = unpack(redis.call('HMGET', record, 'state', 'fence'))
    end
    if state == 'claimed' and fence == ARGV[i + 2] then
        redis.call('HSET', record, 'until', string.format('%d', now + ARGV[1]))
        redis.call('PEXPIRE', record, string.format('%d', ARGV[1] + ARGV[2]))
    else
        over[#over + 1] = ARGV[i + 2]
    end
end
return over
)lua");

} // namespace orizuru::detail
