// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The parameters of a request, and why one is refused.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/ops/web/percent.hpp>

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

} // namespace orizuru::detail::web
