// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads the errors by which a node of a Cluster tells that another one is to be asked.

#include <orizuru/error.hpp>

#include <string_view>

namespace orizuru::detail {

/// Ends the errors after which another node is to be asked; a Stream appends it.
inline constexpr std::string_view redirected = " (the next attempt goes to another node)";

[[nodiscard]] [[gnu::cold]] inline bool is_redirected(std::string_view error) noexcept {
    return error.find(redirected) != std::string_view::npos;
}

inline constexpr std::string_view cluster_down = "CLUSTERDOWN";
/// True if the node may be down for itself alone.
[[nodiscard]] [[gnu::cold]] inline bool may_be_down_alone(const ReplyError& error) noexcept {
    return error.code() == cluster_down;
}

/// True if another node has this key, or none has, though the node may serve other keys.
[[nodiscard]] [[gnu::cold]] inline bool is_astray(std::string_view error) noexcept {
    return error.starts_with("MOVED ") || error.starts_with("CLUSTERDOWN Hash slot");
}

/// A hint for the error's text where the address is of the wrong kind; else empty.
[[nodiscard]] [[gnu::cold]] inline std::string_view
hint_of_address(std::string_view about, std::string_view error) noexcept {
    const bool by_node = error.starts_with("MOVED ") && !is_redirected(error) &&
                         about.find("+cluster://") == std::string_view::npos;
    return by_node ? "; for a Cluster the address begins with redis+cluster://" : "";
}

} // namespace orizuru::detail
