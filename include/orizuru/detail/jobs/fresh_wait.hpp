// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Lets the wait of a job begin when a person has it served: the time on the dead list is none, and
// one that is served before its time is not due later.

namespace orizuru::detail {

/// The Lua function waits_from_now(payload, which), which needs the function refusal: a job's
/// envelope (job.hpp) with Redis' time as its enqueued_at; with 'early' only if it has a later one.
/// For a user without the right to TIME, it is the payload as it is.
///
/// All other payloads stay as they are: an envelope has the types of all fields up to its payload,
/// version 1, an id of 1 to 512 bytes, an attempt, and two times in the years 2001 to 2199. A
/// message that is no job and has all of that is taken for one.
inline constexpr char waits_from_now_function[] = R"lua(
local function field_at(bytes, at, form)
    local kind = at and string.byte(bytes, at)
    if not kind then return end
    if form == 'text' or form == 'bin' then
        if form == 'text' and kind >= 0xa0 and kind <= 0xbf then
            return at + 1 + kind - 0xa0, kind - 0xa0
        end
        local width = 2 ^ (kind - (form == 'text' and 0xd9 or 0xc4))
        if width < 1 or width > 4 or at + width > #bytes then return end
        local size = struct.unpack('>I' .. width, bytes, at + 1)
        return at + 1 + width + size, size
    end
    if kind <= 0x7f then return at + 1, kind end
    if kind >= 0xe0 or form == 'any' and kind == 0xc0 then return at + 1, -1 end
    local width = 2 ^ (kind % 4)
    if kind < 0xcc or kind > 0xd3 or at + width > #bytes then return end
    return at + 1 + width, struct.unpack((kind < 0xd0 and '>I' or '>i') .. width, bytes, at + 1)
end
local function waits_from_now(payload, which)
    local kind = string.byte(payload, 1) or 0
    local many = kind == 0xdc and #payload > 2 and struct.unpack('>I2', payload, 2) > 10
    local at, time = kind >= 0x9b and kind <= 0x9f and 2 or many and 4 or nil, nil
    local values = {}
    for i, form in ipairs({'int', 'text', 'int', 'int', 'int', 'any', 'any', 'text', 'text', 'text',
            'bin'}) do
        if i == 5 then time = at end
        at, values[i] = field_at(payload, at, form)
    end
    local function is_within(field, least, most)
        return values[field] >= least and values[field] <= most
    end
    local is_job = at and at <= #payload + 1 and is_within(1, 1, 1) and is_within(2, 1, 512)
        and is_within(3, 1, 2147483647) and is_within(4, 1e12, 7258118399999)
        and is_within(5, 1e12, 7258118399999)
    if not is_job or refusal({}, {{'TIME'}}) then return payload end
    local clock = redis.call('TIME')
    local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
    if which == 'early' and values[5] <= now then return payload end
    return string.sub(payload, 1, time - 1) ..
        struct.pack('>BI4I4', 0xcf, math.floor(now / 2 ^ 32), now % 2 ^ 32) ..
        string.sub(payload, time + 9)
end
)lua";

} // namespace orizuru::detail
