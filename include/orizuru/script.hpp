// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A Lua body that settles a message in one step with its removal, for `MessageGuard::settle`.

#include <orizuru/detail/base/config.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

/// A settlement as the body of a Lua function with three parameters: KEYS and ARGV (the caller's
/// own, from 1) and payload (the message's bytes).
///
/// The same step then removes the message from the consumer's list. To refuse, a body returns an
/// error before its first write; the message then stays where it is. It also stays when a command
/// of the body fails, but so do the body's earlier writes. A body that writes more than once
/// therefore first checks the types of its keys and the user's rights:
///
///     local refused = refusal({{KEYS[1], 'list'}, {KEYS[2], 'hash'}},
///         {{'LPUSH', KEYS[1], 'x'}, {'HSET', KEYS[2], 'x', 'x'}})
///     if refused then return refused end
///
/// Cheap to copy, immutable, safe to use from any thread.
class Script {
  public:
    explicit Script(std::string_view body);

    /// The whole script as Redis receives it.
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
