// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The functions that a Once calls: the user's effect, and those of the message that it settles.

#include <orizuru/once/claim.hpp>
#include <orizuru/script.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace orizuru::detail {

inline constexpr std::size_t largest_once_result = std::size_t{1} << 20;

/// Returns the result that is to be stored, if any.
using OnceCall = std::function<std::optional<std::string>(const OnceToken&)>;

/// A message's guard: each settles it, and returns and throws as a settlement does.
struct OnceMessage {
    std::function<bool()> ack;
    std::function<bool(std::chrono::milliseconds delay)> put_off;
    std::function<bool(const Script& body, std::vector<std::string> keys,
                       std::vector<std::string> arguments)>
        settle;
};

} // namespace orizuru::detail
