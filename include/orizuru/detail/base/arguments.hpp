// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Checks of arguments that several parts share, before anything is sent.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

[[nodiscard]] [[gnu::cold]] inline std::string text_of(std::chrono::milliseconds time) {
    return time.count() == 0 ? "0" : joined({Digits(time.count()), " ms"});
}

/// Throws unless `time` is from `least` to 24 h.
inline void check_time(std::string_view name, std::chrono::milliseconds time,
                       std::chrono::milliseconds least) {
    if (time < least || time > std::chrono::hours(24)) {
        throw std::invalid_argument(joined({name, " must be ", text_of(least), " to 24 h"}));
    }
}

/// Throws unless `count` is from 1 to `most`.
inline void check_count(std::string_view name, int count, int most) {
    if (count < 1 || count > most) {
        throw std::invalid_argument(joined({name, " must be 1 to ", Digits(most)}));
    }
}

} // namespace orizuru::detail
