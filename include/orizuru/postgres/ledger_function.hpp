// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The functions that a Ledger runs, and what they return.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/error.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
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

namespace detail {

/// Calls `f`; returns its encoded result, none when it returns nothing. Throws EncodeError.
template <class F, class... Arguments>
[[nodiscard]] std::optional<std::string> call_for_result(std::int64_t max_payload, F& f,
                                                         const std::stop_token& token,
                                                         Arguments&... arguments) {
    if constexpr (std::is_void_v<StoppableResult<F, Arguments...>>) {
        call_stoppable(f, token, arguments...);
        return std::nullopt;
    } else {
        std::string encoded;
        encode(call_stoppable(f, token, arguments...), encoded, max_payload);
        return encoded;
    }
}

/// Throws DecodeError when it is no R; std::bad_alloc.
template <MessageDecodable R>
[[nodiscard]] R decode_result(const std::string& encoded) {
    Scratch scratch;
    try {
        return decode<R>(encoded, scratch);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        throw DecodeError(std::string("the result of a job: ") + error.what(), encoded);
    }
}

} // namespace detail

} // namespace orizuru
