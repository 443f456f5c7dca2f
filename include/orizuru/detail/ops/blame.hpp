// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads how often collectors have blamed messages for the deaths of consumers.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/scripts/recovery_counts.hpp>
#include <orizuru/detail/redis/scripts/sha1.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/ops/queue_state.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// The field of Keys::recoveries() that counts a message's blame. That of a job is named after its
/// id, for its envelope changes with each try.
[[nodiscard]] inline std::string blame_field(std::string_view payload) {
    const auto id = envelope_time(payload) ? envelope_id(payload) : std::nullopt;
    return id ? recovery_field(*id) : std::string(std::string_view(sha1_hex(payload)));
}

/// Fills in how often messages of a queue were blamed. Redis: HMGET for up to 1000 of them,
/// O(messages). Throws as Connection does.
inline void read_blame(Connection& connection, const Keys& keys,
                       std::span<PlacedMessage> messages) {
    constexpr std::size_t together = 1000;
    const std::string key = keys.recoveries();
    while (!messages.empty()) {
        const auto some = messages.first(std::min(together, messages.size()));
        const Reply reply = exchange(connection, key, "HMGET", [&](std::string& out) {
            begin_command(out, 2 + some.size());
            append_argument(out, "HMGET");
            append_argument(out, key);
            for (const PlacedMessage& message : some) {
                append_argument(out, blame_field(message.payload));
            }
        });
        if (!reply.is(Reply::Type::array) || reply.elements.size() != some.size()) {
            refuse(connection, "HMGET");
        }
        for (std::size_t i = 0; i < some.size(); ++i) {
            some[i].blamed = whole_number(reply.elements[i].text).value_or(0);
        }
        messages = messages.subspan(some.size());
    }
}

} // namespace orizuru::detail
