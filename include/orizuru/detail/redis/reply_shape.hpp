// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Whether a reply is what a command or script can return at all.

#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstdint>

namespace orizuru::detail {

/// A number of things, `least` of them or more.
[[nodiscard]] inline bool is_count(const Reply& reply, std::int64_t least = 0) noexcept {
    return reply.is(Reply::Type::integer) && reply.integer >= least;
}

/// Strings, or none.
[[nodiscard]] inline bool is_strings(const Reply& reply) noexcept {
    return reply.is(Reply::Type::array) &&
           std::all_of(reply.elements.begin(), reply.elements.end(),
                       [](const Reply& element) { return element.is(Reply::Type::string); });
}

} // namespace orizuru::detail
