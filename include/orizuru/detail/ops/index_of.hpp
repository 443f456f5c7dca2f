// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Finds a place in a list again that others change.

namespace orizuru::detail {

/// The Lua function index_of(list, element, expected, length): where an element of a list is that
/// was at `expected` before others pushed and took; nil when it has gone, or is more than 10,000
/// away. Of equal ones the nearest from there on, for pushes move it that way; else the nearest
/// before. O(1) when nothing has moved, else O(20,000) near an end.
inline constexpr char index_of_function[] = R"lua(
local function index_of(list, element, expected, length)
    if redis.call('LINDEX', list, expected) == element then return expected end
    local at_right, found = 2 * expected > length, nil
    local most = (at_right and math.max(length - expected, 0) or expected) + 10000
    for _, at in ipairs(redis.call('LPOS', list, element, 'RANK', at_right and -1 or 1,
            'COUNT', 0, 'MAXLEN', most)) do
        local better = not found
        if at >= expected then
            better = better or found < expected or at < found
        else
            better = better or found < expected and at > found
        end
        if better then found = at end
    end
    return found
end
)lua";

} // namespace orizuru::detail
