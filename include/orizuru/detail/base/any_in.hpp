// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Searches a few elements. The standard algorithms unroll loops: half a kilobyte for each call.

namespace orizuru::detail {

/// Whether the condition holds for an element.
template <class Range, class Condition>
[[nodiscard]] bool any_in(const Range& range, Condition condition) {
    for (const auto& element : range) {
        if (condition(element)) {
            return true;
        }
    }
    return false;
}

/// Whether an element equals the value.
template <class Range, class Value>
[[nodiscard]] bool is_in(const Range& range, const Value& value) {
    return any_in(range, [&](const auto& element) { return element == value; });
}

} // namespace orizuru::detail
