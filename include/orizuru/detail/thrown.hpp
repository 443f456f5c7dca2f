// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What was thrown, in words.

#include <exception>
#include <string_view>

namespace orizuru::detail {

/// Calls `tell` with what the exception says that is being handled; returns what `tell` returns.
template <class Tell>
decltype(auto) tell_thrown(Tell tell) {
    try {
        throw;
    } catch (const std::exception& error) {
        return tell(std::string_view(error.what()));
    } catch (...) {
        return tell(std::string_view("an exception that is no std::exception"));
    }
}

} // namespace orizuru::detail
