// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The field `ledger_attempt` in the envelope (job.hpp) of a ledger's message shows for which try it
// was sent: how often the job had been claimed before. A message of a first try has no such field.
// A Worker that puts the message off writes the field back as it was.

#include <orizuru/codec.hpp>
#include <orizuru/jobs/job.hpp>

#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// The message to be sent for a job that was claimed `attempt` times. Bytes that are no envelope as
/// a Ledger makes it stay as they are.
[[nodiscard]] inline std::string with_ledger_attempt(std::string envelope, int attempt) {
    if (attempt == 0) {
        return envelope;
    }
    try {
        Scratch scratch;
        auto job = Codec<Job<Raw>>::decode(envelope, scratch);
        if (job.attributes.empty()) { // else they have the field's place
            job.ledger_attempt = static_cast<std::uint64_t>(attempt);
            std::string stamped;
            Codec<Job<Raw>>::encode(job, stamped);
            return stamped;
        }
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
    }
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
