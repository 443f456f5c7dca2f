// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads what Redis reports about itself in INFO.

#include <orizuru/detail/base/joined.hpp>

#include <string>
#include <string_view>

namespace orizuru::detail {

/// The value of a field; empty when the field is missing.
[[nodiscard]] inline std::string_view info_field(std::string_view info, std::string_view name) {
    const std::string line = joined({"\n", name, ":"});
    const auto at = info.find(line);
    if (at == std::string_view::npos) {
        return {};
    }
    info.remove_prefix(at + line.size());
    return info.substr(0, info.find('\r'));
}

/// The policy by which Redis may evict the keys of a queue; empty if it evicts none or is silent.
[[nodiscard]] inline std::string_view evicting_policy(std::string_view info) {
    const std::string_view policy = info_field(info, "maxmemory_policy");
    return policy == "noeviction" ? std::string_view() : policy;
}

} // namespace orizuru::detail
