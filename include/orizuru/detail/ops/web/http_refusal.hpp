// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The parameters of a request, and why one is refused.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/jobs/envelope_limits.hpp>
#include <orizuru/detail/ops/web/percent.hpp>
#include <orizuru/jobs/job_time.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail::web {

/// An answer other than 200, thrown where that is found out.
struct HttpRefusal {
    int status;
    std::string reason;
};

/// Throws HttpRefusal when it is missing or cannot be decoded.
[[nodiscard]] inline std::string parameter(std::string_view query, std::string_view name) {
    auto value = query_value(query, name);
    if (!value) {
        throw HttpRefusal{400, joined({"the parameter ", name, " is missing"})};
    }
    return std::move(*value);
}

/// Milliseconds since 1970; nothing when it is missing. Throws HttpRefusal for what is no time.
[[nodiscard]] inline std::optional<JobTime> time_parameter(std::string_view query,
                                                           std::string_view name) {
    const auto value = query_value(query, name);
    if (!value) {
        return std::nullopt;
    }
    const auto number = whole_number(*value);
    constexpr auto latest = static_cast<std::uint64_t>(latest_job_time.time_since_epoch().count());
    if (!number || *number > latest) {
        throw HttpRefusal{400, joined({"the parameter ", name, " is no time"})};
    }
    return JobTime(std::chrono::milliseconds(static_cast<std::int64_t>(*number)));
}

} // namespace orizuru::detail::web
