// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Lua that reads the entries of a dead list: those that script_parts.hpp shows, and those of
// version 1.

namespace orizuru::detail {

/// The Lua function read(entry): the first and last byte of its payload, those of its reason, and
/// its time; nothing for what is no entry.
inline constexpr char read_entry_function[] = R"lua(
local function text(entry, at)
    local kind = string.byte(entry, at) or 0
    if kind >= 0xa0 and kind <= 0xbf then return at + 1, at + kind - 0xa0 end
    local width = ({[0xc4] = 1, [0xc5] = 2, [0xc6] = 4, [0xd9] = 1, [0xda] = 2, [0xdb] = 4})[kind]
    if width and at + width <= #entry then
        return at + width + 1, at + width + struct.unpack('>I' .. width, entry, at + 1)
    end
end
local function read(entry)
    local beginning = string.sub(entry, 1, 2)
    if beginning ~= '\148\1' and beginning ~= '\148\2' then return end
    local payload, payload_end = text(entry, 3)
    if not payload then return end
    local reason, reason_end = text(entry, payload_end + 1)
    if not reason then return end
    local at = reason_end + 1
    local time = string.byte(entry, at) or 0xc0
    if time >= 0x80 then
        local width = ({[0xcc] = 1, [0xcd] = 2, [0xce] = 4, [0xcf] = 8})[time]
        if not width or at + width > #entry then return end
        time, at = struct.unpack('>I' .. width, entry, at + 1), at + width
    end
    if at == #entry and time <= 253402300799999 then
        return payload, payload_end, reason, reason_end, time
    end
end
)lua";

/// The Lua function dead_job(entry): its payload; nothing for what is no entry. Needs the function
/// read.
inline constexpr char dead_job_function[] = R"lua(
local function dead_job(entry)
    local first, last = read(entry)
    return first and string.sub(entry, first, last)
end
)lua";

} // namespace orizuru::detail
