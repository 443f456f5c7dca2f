// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The functions that a Ledger runs.

#include <concepts>
#include <stop_token>

namespace orizuru {

/// It may take a std::stop_token behind its other arguments.
template <class F, class... Arguments>
concept LedgerFunction =
    std::invocable<F&, Arguments...> || std::invocable<F&, Arguments..., const std::stop_token&>;

namespace detail {

template <class F, class... Arguments>
void call_stoppable(F& f, const std::stop_token& token, Arguments&... arguments) {
    if constexpr (std::invocable<F&, Arguments&..., const std::stop_token&>) {
        f(arguments..., token);
    } else {
        f(arguments...);
    }
}

} // namespace detail

} // namespace orizuru
