// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Asks for many keys at once whether one of them exists.

#include <orizuru/connection.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <optional>
#include <span>
#include <string>

namespace orizuru::detail {

/// Returns nothing where Redis refuses to answer for all keys at once, but may answer for one: with
/// keys in several slots, and to a user without the right to one key. Redis: EXISTS, O(keys).
/// Throws as Connection::command, except for that refusal.
[[nodiscard]] inline std::optional<bool> any_exists(Connection& connection,
                                                    std::span<const std::string> keys) {
    try {
        const Reply reply = connection.command("", "EXISTS", keys);
        require_type(connection, reply, Reply::Type::integer, "EXISTS");
        return reply.integer != 0;
    } catch (const ReplyError& error) {
        const bool separately = error.code() == "CROSSSLOT" || error.code() == "NOPERM";
        if (keys.size() == 1 || !separately) {
            throw;
        }
        return std::nullopt;
    }
}

} // namespace orizuru::detail
