// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A Lua body that settles a message in one step with the message's removal: what
// `MessageGuard::settle` takes.

#include <orizuru/detail/base/sha1.hpp>
#include <orizuru/detail/redis/refusal.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

/// What is to happen to a message, as the body of a Lua function of three names: KEYS and ARGV
/// (the caller's own, from 1) and payload (the message's bytes).
///
/// The message is removed from the consumer's list after the body, in the same step. A body that
/// refuses returns an error before its first write, and the message stays where it is. So it does
/// when a command of the body fails; but what the body wrote before stays too. A body that writes
/// more than once asks for all that it needs first, the types of its keys and the user's rights:
///
///     local refused = refusal({{KEYS[1], 'list'}, {KEYS[2], 'hash'}},
///         {{'LPUSH', KEYS[1], 'x'}, {'HSET', KEYS[2], 'x', 'x'}})
///     if refused then return refused end
///
/// Cheap to copy; never changes; may be used by any thread.
class Script {
  public:
    explicit Script(std::string_view body) : m_text(std::make_shared<Text>(around(body))) {}

    /// The whole script as Redis gets it.
    [[nodiscard]] const std::string& source() const noexcept { return m_text->source; }
    /// Its name in Redis' script cache.
    [[nodiscard]] std::string_view sha1() const noexcept {
        return {m_text->sha1.data(), m_text->sha1.size()};
    }

  private:
    struct Text {
        explicit Text(std::string text) : source(std::move(text)), sha1(detail::sha1_hex(source)) {}
        std::string source;
        detail::Sha1Hex sha1;
    };

    static std::string around(std::string_view body);

    std::shared_ptr<const Text> m_text;
};

// KEYS[1] processing; KEYS[2..] the body's.
// ARGV[1] header expected, [2] next header, [3] least length, [4] index of the message; [5..] the
// body's. Returns 1 | STALE (not the list it was written for) | REFUSED (by the body) | WRONGTYPE
// (fenced). The marker is the next header: it is fresh, so it cannot be in the list yet.
inline std::string Script::around(std::string_view body) {
    std::string text = detail::moving_script(R"lua(
local p = KEYS[1]
if redis.call('LINDEX', p, -1) ~= ARGV[1] then return redis.error_reply('STALE header') end
if redis.call('LLEN', p) - 1 < tonumber(ARGV[3]) then return redis.error_reply('STALE length') end
local missing = refusal({}, {{'LSET', p, '0', 'x'}, {'LREM', p, '0', 'x'}})
if missing then return missing end
local function body(KEYS, ARGV, payload)
)lua");
    text += body;
    text += R"lua(
end
local ran, refused = pcall(body, {unpack(KEYS, 2)}, {unpack(ARGV, 5)},
    redis.call('LINDEX', p, ARGV[4]))
if not ran then
    refused = type(refused) == 'table' and refused or {err = tostring(refused)}
    if not string.find(refused.err, '^%u+ ') then refused.err = 'ERR ' .. refused.err end
end
if type(refused) == 'table' and refused.err then
    return redis.error_reply('REFUSED ' .. refused.err)
end
redis.call('LSET', p, ARGV[4], ARGV[2])
redis.call('LREM', p, -1, ARGV[2])
redis.call('LSET', p, -1, ARGV[2])
return 1
)lua";
    return text;
}

} // namespace orizuru
