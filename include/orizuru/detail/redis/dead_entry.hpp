// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How an entry of a dead list is written. It is msgpack, byte for byte:
//
//   0x94 0x02                   an array of four, version 2
//   0xc6, 4 bytes of size, …    bin 32: the payload
//   0xc6, 4 bytes of size, …    bin 32: the reason
//   0xcf, 8 bytes               uint 64: milliseconds since 1970
//
// Sizes and numbers have their highest byte first. As bin, a payload and a reason may be any bytes
// for every msgpack. Redis' own cmsgpack knows no bin: so version 1, which older processes write,
// has a str for each.

namespace orizuru::detail {

/// The Lua function dead_entry(payload, reason). The script has asked Redis for TIME's right.
inline constexpr char dead_entry_function[] = R"lua(
local function dead_entry(payload, reason)
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    return '\148\2' .. struct.pack('>BI4', 0xc6, #payload) .. payload ..
        struct.pack('>BI4', 0xc6, #reason) .. reason ..
        struct.pack('>BI4I4', 0xcf, math.floor(now / 2 ^ 32), now % 2 ^ 32)
end
)lua";

} // namespace orizuru::detail
