// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The field `ledger_attempt` in the envelope (job.hpp) of a ledger's message shows for which try it
// was sent: how often the job had been claimed before. A message of a first try has no such field.
// A Worker that puts the message off writes the field back as it was.

#include <cstdint>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// The message to be sent for a job that was claimed `attempt` times. Bytes that are no envelope as
/// a Ledger makes it stay as they are.
[[nodiscard]] inline std::string with_ledger_attempt(std::string envelope, int attempt) {
    constexpr char with_eleven_fields = '\x9b';
    if (attempt == 0 || envelope.empty() || envelope.front() != with_eleven_fields) {
        return envelope;
    }
    ++envelope.front();
    const auto number = static_cast<std::uint32_t>(attempt);
    if (number >= 0x80) {
        envelope += '\xce'; // uint 32; a smaller one is its own byte
        for (const unsigned shift : {24U, 16U, 8U}) {
            envelope += static_cast<char>(number >> shift & 0xffU);
        }
    }
    envelope += static_cast<char>(number & 0xffU);
    return envelope;
}

/// The Lua function ledger_attempt(entry, first, last): what the envelope in these bytes says, and
/// 0 when it says nothing. It needs read_entry_function.
inline constexpr char ledger_attempt_function[] = R"lua(
local widths = {[0xc0] = 0, [0xcc] = 1, [0xcd] = 2, [0xce] = 4, [0xcf] = 8, [0xd0] = 1,
    [0xd1] = 2, [0xd2] = 4, [0xd3] = 8}
local function behind(entry, at)
    local _, text_end = text(entry, at)
    if text_end then return text_end + 1 end
    local kind = string.byte(entry, at) or 0xc1
    local width = (kind < 0x80 or kind >= 0xe0) and 0 or widths[kind]
    return width and at + 1 + width
end
local function ledger_attempt(entry, first, last)
    local at = first + (({[0xdc] = 3, [0xdd] = 5})[string.byte(entry, first)] or 1)
    for _ = 1, 11 do
        at = at and behind(entry, at)
    end
    if not at or at > last then return 0 end
    local kind = string.byte(entry, at)
    if kind < 0x80 then return kind end
    if kind < 0xcc or kind > 0xce or at + widths[kind] > last then return 0 end
    return (struct.unpack('>I' .. widths[kind], entry, at + 1))
end
)lua";

} // namespace orizuru::detail
