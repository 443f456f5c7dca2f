// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads the numbers of a group (detail/redis/scripts/group_ends.hpp).

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/jobs/group/group_state.hpp>
#include <orizuru/reply.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace orizuru::detail {

/// `fields`: HMGET's of `open`, `left`, `jobs`, `failed`.
[[nodiscard]] inline GroupState group_state(std::span<const Reply, 4> fields) {
    const auto number = [&](std::size_t field) {
        return whole_number(fields[field].text).value_or(0);
    };
    if (fields[1].is(Reply::Type::nil)) {
        return {};
    }
    const bool open = !fields[0].is(Reply::Type::nil);
    const std::uint64_t left = number(1);
    return {.stage = open       ? GroupStage::open
                     : left > 0 ? GroupStage::waiting
                                : GroupStage::done,
            .jobs = number(2),
            .pending = open && left > 0 ? left - 1 : left,
            .failed = number(3)};
}

} // namespace orizuru::detail
