// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One reply of Redis as a value.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru {

/// A reply of Redis: it owns its bytes and may outlive the connection.
struct Reply {
    /// Types of replies: a nil is no value, a status a short text such as "OK", a string any bytes.
    enum class Type { nil, status, error, integer, string, array };

    Type type = Type::nil;       ///< says which of the following is set
    std::int64_t integer = 0;    ///< set for an integer
    std::string text;            ///< set for a status, an error or a string
    std::vector<Reply> elements; ///< set for an array; any of them may be an error

    /// True when the reply has this type.
    [[nodiscard]] bool is(Type other) const noexcept { return type == other; }

    /// The first word of an error, e.g. "WRONGTYPE".
    [[nodiscard]] std::string_view code() const noexcept {
        return std::string_view(text).substr(0, text.find(' '));
    }

    /// The text behind the first word of an error.
    [[nodiscard]] std::string_view behind_code() const noexcept {
        const auto space = text.find(' ');
        return space == std::string::npos ? std::string_view()
                                          : std::string_view(text).substr(space + 1);
    }
};

} // namespace orizuru
