// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Many values as one parameter.

#include <string>
#include <vector>

namespace orizuru::detail {

/// Texts or numbers as the parameter of $n::text[], $n::bigint[] and the like.
[[nodiscard]] inline std::string to_array(const std::vector<std::string>& values) {
    std::string text = "{";
    for (const std::string& value : values) {
        text += text.size() == 1 ? "\"" : ",\"";
        for (const char c : value) {
            text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
        }
        text += '"';
    }
    return text + '}';
}

} // namespace orizuru::detail
