// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The functions that a Ledger runs.

#include <orizuru/codec.hpp>

#include <concepts>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace orizuru {

namespace detail {

/// It may take a std::stop_token behind its other arguments.
template <class F, class... Arguments>
decltype(auto) call_stoppable(F& f, const std::stop_token& token, Arguments&... arguments) {
    if constexpr (std::invocable<F&, Arguments&..., const std::stop_token&>) {
        return f(arguments..., token);
    } else {
        return f(arguments...);
    }
}

template <class F, class... Arguments>
concept Stoppable =
    std::invocable<F&, Arguments...> || std::invocable<F&, Arguments..., const std::stop_token&>;

template <class F, class... Arguments>
using StoppableResult = decltype(call_stoppable(
    std::declval<F&>(), std::declval<const std::stop_token&>(), std::declval<Arguments&>()...));

template <class Result>
concept VoidOrEncodable = std::is_void_v<Result> || MessageEncodable<std::remove_cvref_t<Result>>;

} // namespace detail

/// Takes these arguments, and a std::stop_token behind them if it likes. Returns nothing, or the
/// job's result.
template <class F, class... Arguments>
concept LedgerFunction = detail::Stoppable<F, Arguments...> &&
    detail::VoidOrEncodable<detail::StoppableResult<F, Arguments...>>;

} // namespace orizuru
