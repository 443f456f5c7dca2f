// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Separates messages from headers in a script that takes over a processing list.

namespace orizuru::detail {

/// The Lua function take_headers(list, prefix). It returns the messages of a list; its header, or
/// '' when the rightmost element is none; and the other headers in it. All headers of a consumer
/// begin with `prefix`; without it, the prefix of the rightmost element counts.
///
/// Other headers exist only when a user lost a right in the middle of SETTLE: then the latest one
/// counts, and the messages that they overwrote are settled.
inline constexpr char take_headers_function[] = R"lua(
local function take_headers(list, prefix)
    local oldest = list[#list] or ''
    prefix = prefix or string.match(oldest, '^(orz:%w+:)%d+$')
    local messages, others, latest, number = {}, {}, '', -1
    for _, element in ipairs(list) do
        if prefix and string.sub(element, 1, #prefix) == prefix then
            if element ~= oldest then others[#others + 1] = element end
            local own = tonumber(string.sub(element, #prefix + 1)) or -1
            if own > number then latest, number = element, own end
        else
            messages[#messages + 1] = element
        end
    end
    local known = prefix and string.sub(oldest, 1, #prefix) == prefix
    return messages, known and latest or '', others
end
)lua";

} // namespace orizuru::detail
