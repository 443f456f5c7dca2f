// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Finds the registered consumers of a queue, and those of them without a heartbeat.

#include <orizuru/connection.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Returns the consumers' ids. Redis: SMEMBERS. Throws as Connection::command.
inline std::vector<std::string> registered_consumers(Connection& connection, const Keys& keys) {
    const std::string consumers = keys.consumers();
    Reply members = connection.command(consumers, "SMEMBERS", consumers);
    if (!is_strings(members)) {
        connection.refuse("SMEMBERS");
    }
    std::vector<std::string> ids;
    ids.reserve(members.elements.size());
    for (Reply& member : members.elements) {
        ids.push_back(std::move(member.text));
    }
    return ids;
}

/// Returns their heartbeats; nil if there is none. All are nil for a user who may not run MGET.
inline std::vector<Reply> heartbeats(Connection& connection, const Keys& keys,
                                     std::span<const std::string> ids) {
    try {
        Reply beats = connection.roundtrip(keys.consumers(), "MGET", [&](std::string& out) {
            begin_command(out, 1 + ids.size());
            append_argument(out, "MGET");
            for (const std::string& id : ids) {
                append_argument(out, keys.heartbeat(id));
            }
        });
        if (beats.elements.size() != ids.size() ||
            !std::all_of(beats.elements.begin(), beats.elements.end(), [](const Reply& beat) {
                return beat.is(Reply::Type::string) || beat.is(Reply::Type::nil);
            })) {
            connection.refuse("MGET");
        }
        return std::move(beats.elements);
    } catch (const ReplyError& error) {
        if (error.code() != "NOPERM") {
            throw;
        }
        return std::vector<Reply>(ids.size());
    }
}

/// Returns the ids without a heartbeat. REAP checks again, in the step that takes the list.
/// Redis: an MGET for each 1000. Throws as Connection::command.
inline std::vector<std::string> unheard_consumers(Connection& connection, const Keys& keys,
                                                  const std::vector<std::string>& ids) {
    constexpr std::size_t at_once = 1000;
    std::vector<std::string> unheard;
    for (std::size_t at = 0; at < ids.size(); at += at_once) {
        const std::span some(ids.data() + at, std::min(at_once, ids.size() - at));
        const std::vector<Reply> beats = heartbeats(connection, keys, some);
        for (std::size_t i = 0; i < some.size(); ++i) {
            if (beats[i].is(Reply::Type::nil)) {
                unheard.push_back(some[i]);
            }
        }
    }
    return unheard;
}

} // namespace orizuru::detail
