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

class Script;

namespace detail {
class CachedScript;

/// A script of the library's own that lasts as long as the program. Allocates nothing.
[[nodiscard]] Script constant_script(const CachedScript& whole) noexcept;
} // namespace detail

/// A settlement as the body of a Lua function with three parameters: KEYS and ARGV (the caller's
/// own, from 1) and payload (the message's bytes).
///
/// One step runs it and removes the message from the consumer's list. To refuse, a body returns an
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
    /// Makes the whole script from a copy of `body`, which Redis reads when a guard settles first
    /// with it: an error in the body is a ReplyError there.
    explicit Script(std::string_view body);

    /// The whole script as Redis receives it. Valid as long as this script or a copy of it.
    [[nodiscard]] std::string_view source() const noexcept;
    /// Its name in Redis' script cache.
    [[nodiscard]] std::string sha1() const;

  private:
    friend Script detail::constant_script(const detail::CachedScript& whole) noexcept;

    explicit Script(std::shared_ptr<const detail::CachedScript> script) noexcept
        : m_script(std::move(script)) {}

    std::shared_ptr<const detail::CachedScript> m_script;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/redis/script.ipp>
#endif
