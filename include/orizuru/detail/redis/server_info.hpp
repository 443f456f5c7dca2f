// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads what Redis reports about itself in INFO.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

#include <chrono>
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

[[nodiscard]] inline std::chrono::seconds uptime(std::string_view info) {
    return std::chrono::seconds(whole_number(info_field(info, "uptime_in_seconds")).value_or(0));
}

/// Whether the server was a replica since it started: its uptime then does not tell how long
/// consumers have been able to reach it. Redis forgets that after an hour without replicas.
[[nodiscard]] inline bool was_replica(std::string_view info) {
    const std::string_view offset = info_field(info, "second_repl_offset");
    return !offset.empty() && offset != "-1";
}

/// The policy by which Redis may evict the keys of a queue; empty if it evicts none or is silent.
[[nodiscard]] inline std::string_view evicting_policy(std::string_view info) {
    const std::string_view policy = info_field(info, "maxmemory_policy");
    return policy == "noeviction" ? std::string_view() : policy;
}

} // namespace orizuru::detail
