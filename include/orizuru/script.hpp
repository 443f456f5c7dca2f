// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A Lua body that settles a message in one step with the message's removal: what
// `MessageGuard::settle` takes.

#include <orizuru/detail/base/config.hpp>

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
    explicit Script(std::string_view body);

    /// The whole script as Redis gets it.
    [[nodiscard]] const std::string& source() const noexcept { return m_text->source; }
    /// Its name in Redis' script cache.
    [[nodiscard]] const std::string& sha1() const noexcept { return m_text->sha1; }

  private:
    struct Text {
        std::string source;
        std::string sha1;
    };

    std::shared_ptr<const Text> m_text;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/script.ipp>
#endif
