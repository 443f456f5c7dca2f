// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Checks whether a command or script can return such a reply at all.

#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstdint>

namespace orizuru::detail {

/// An integer, `least` or more.
[[nodiscard]] inline bool is_count(const Reply& reply, std::int64_t least = 0) noexcept {
    return reply.is(Reply::Type::integer) && reply.integer >= least;
}

/// An array of strings, perhaps empty.
[[nodiscard]] inline bool is_strings(const Reply& reply) noexcept {
    return reply.is(Reply::Type::array) &&
           std::ranges::all_of(reply.elements, [](const Reply& element) {
               return element.is(Reply::Type::string);
           });
}

} // namespace orizuru::detail
