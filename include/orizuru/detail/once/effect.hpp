// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Effects that happen once, and their results.

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>

namespace orizuru::detail {

/// Can be called with `Arguments` and returns nothing or a string.
template <class F, class... Arguments>
concept EffectOf = std::invocable<F&, Arguments...> &&
    (std::is_void_v<std::invoke_result_t<F&, Arguments...>> ||
     std::convertible_to<std::invoke_result_t<F&, Arguments...>, std::string>);

template <class F, class Token>
concept Effect = EffectOf<F, Token> || EffectOf<F>;

/// Calls `effect`; returns its result, or nullopt when it returns nothing.
template <class Token, class F>
std::optional<std::string> result_of(F& effect, const Token& token) {
    const auto call = [&]() -> decltype(auto) {
        if constexpr (EffectOf<F, const Token&>) {
            return effect(token);
        } else {
            return effect();
        }
    };
    if constexpr (std::is_void_v<std::invoke_result_t<decltype(call)>>) {
        call();
        return std::nullopt;
    } else {
        return std::string(call());
    }
}

} // namespace orizuru::detail
