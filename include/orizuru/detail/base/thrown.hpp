// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Exceptions as text.

#include <exception>
#include <new>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// Calls `tell` with the text of the exception being handled, which may be empty; returns its
/// result.
template <class Tell>
decltype(auto) tell_thrown(Tell tell) {
    try {
        throw;
    } catch (const std::exception& error) {
        const char* const what = error.what();
        return tell(what == nullptr ? std::string_view() : std::string_view(what));
    } catch (...) {
        return tell(std::string_view("an exception that is no std::exception"));
    }
}

/// `text`; when memory is short, words so short that they need none.
[[nodiscard]] inline std::string text_or_less(std::string_view text) {
    try {
        return std::string(text);
    } catch (const std::bad_alloc&) {
        return "no memory";
    }
}

} // namespace orizuru::detail
