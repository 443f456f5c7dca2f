// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The effects that a Once runs, and the result of a run.

#include <orizuru/detail/once/effect.hpp>
#include <orizuru/once/claim.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace orizuru {

/// Outcome of Once::run.
enum class OnceOutcome {
    ran,      ///< it was done, and is marked as done
    repeated, ///< it was done before: nothing has run
    busy,     ///< another claim's lease holds: nothing has run
    lost      ///< it was done, but the claim or the message was lost meanwhile: it may be repeated
};

/// The result of Once::run.
struct OnceRun {
    OnceOutcome outcome;                  ///< says if the effect has run
    std::optional<std::string> result{};  ///< this run's or that of the one before
    std::chrono::milliseconds busy_for{}; ///< if busy: until the other lease ends
};

/// A function that Once::run calls, with the claim's token or without. It may return a result to be
/// stored.
template <class F>
concept OnceEffect = detail::Effect<F, const OnceToken&>;

} // namespace orizuru
