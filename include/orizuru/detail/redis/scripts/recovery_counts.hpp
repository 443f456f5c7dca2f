// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where it is counted how often a message was blamed for the death of a consumer: in the hash
// Keys::recoveries(), in a field named after the message.

#include <orizuru/detail/base/joined.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Time for which Redis remembers a message's recoveries.
inline constexpr std::chrono::seconds recovery_memory = std::chrono::hours(72);

/// The field of the job with this id. Beside it, `charged job <id>` tells how many of its
/// recoveries have been counted as attempts.
[[nodiscard]] inline std::string recovery_field(std::string_view job_id) {
    return joined({"job ", job_id});
}
[[nodiscard]] inline std::string charged_field(std::string_view job_id) {
    return joined({"charged job ", job_id});
}

struct JobRecoveries {
    std::uint64_t all = 0;
    std::uint64_t charged = 0; ///< counted as attempts

    [[nodiscard]] int fresh() const noexcept {
        constexpr std::uint64_t most = std::numeric_limits<int>::max();
        return static_cast<int>(std::min(all - std::min(all, charged), most));
    }
};

/// The Lua function recovery_field(message): that of a job's envelope (job.hpp), whose bytes change
/// with each attempt; for other messages the SHA-1 of their bytes.
inline constexpr char recovery_field_function[] = R"lua(
local function recovery_field(message)
    local at, kind = 2, string.byte(message, 1) or 0
    if kind == 0xdc then at = 4 elseif kind < 0x9b or kind > 0x9f then at = #message end
    local version, text = string.byte(message, at, at + 1)
    local size = text and version >= 1 and version <= 0x7f and text - 0xa0 or 0
    at = at + 2
    if text == 0xd9 then
        size, at = string.byte(message, at) or 0, at + 1
    elseif text == 0xda then
        size, at = (string.byte(message, at) or 0) * 256 + (string.byte(message, at + 1) or 0), at + 2
    elseif size > 31 then
        size = 0
    end
    local behind = at + size
    local attempt = string.byte(message, behind) or 0xc0
    local width = attempt <= 0x7f and 0 or ({[0xcc] = 1, [0xcd] = 2, [0xce] = 4})[attempt]
    local time = width and string.byte(message, behind + 1 + width)
    if size > 0 and size <= 512 and (time == 0xcf or time == 0xd3) then
        return 'job ' .. string.sub(message, at, behind - 1)
    end
    return redis.sha1hex(message)
end
)lua";

} // namespace orizuru::detail
