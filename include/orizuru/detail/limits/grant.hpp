// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Asks Redis for grants of a queue's rate.

#include <orizuru/connection.hpp>
#include <orizuru/detail/limits/grant_script.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/limits/rate.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace orizuru::detail {

/// See grant_script.
struct Grant {
    std::int64_t count;
    std::chrono::microseconds first_in;
};

/// Throws as Connection::command, and ProtocolError.
[[nodiscard]] inline Grant ask_for_grants(Connection& connection, const std::string& rate_key,
                                          const std::vector<std::string>& lists, const Rate& rate,
                                          std::chrono::microseconds ahead, int wanted) {
    const Reply reply =
        connection.command(rate_key, "EVAL", grant_script(), 1 + lists.size(), rate_key, lists,
                           grant_spacing(rate), ahead.count(), wanted);
    const auto is_number = [](const Reply& number) { return is_count(number, -1); };
    if (!reply.is(Reply::Type::array) || reply.elements.size() != 2 ||
        !std::ranges::all_of(reply.elements, is_number)) {
        refuse(connection, "EVAL");
    }
    return {reply.elements[0].integer, std::chrono::microseconds(reply.elements[1].integer)};
}

} // namespace orizuru::detail
