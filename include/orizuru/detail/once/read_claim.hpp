// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads Redis' answer to a claim.

#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/once/claim.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// The reply of claim_script; none when it cannot be one.
[[nodiscard]] inline std::optional<Claim> read_claim(std::string_view id, Reply&& reply) {
    using Type = Reply::Type;
    using std::chrono::milliseconds;
    std::vector<Reply>& parts = reply.elements;
    const std::string_view state = parts.empty() ? std::string_view() : parts[0].text;
    if (state == "claimed" && parts.size() == 2 && parts[1].is(Type::string)) {
        if (const auto fence = whole_number(parts[1].text)) {
            return Claim{.state = Claim::State::claimed,
                         .token = {.id = std::string(id), .fence = *fence}};
        }
    }
    if (state == "busy" && parts.size() == 3 && is_count(parts[1]) && is_count(parts[2])) {
        return Claim{.state = Claim::State::busy,
                     .until = JobTime(milliseconds(parts[1].integer)),
                     .busy_for = milliseconds(parts[2].integer)};
    }
    if (state == "done" && parts.size() == 2 &&
        (parts[1].is(Type::string) || parts[1].is(Type::nil))) {
        Claim done{.state = Claim::State::done};
        if (parts[1].is(Type::string)) {
            done.result = std::move(parts[1].text);
        }
        return done;
    }
    return std::nullopt;
}

} // namespace orizuru::detail
