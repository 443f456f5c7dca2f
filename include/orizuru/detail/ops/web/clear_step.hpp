// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Removes all dead messages in steps that are short, so that others are served between them.

#include <orizuru/ops/inspector.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace orizuru::detail::web {

/// What a step has done.
struct ClearStep {
    std::uint64_t removed = 0;
    bool more = false;
    /// For the steps that follow: they leave alone who dies after this. Nothing when Redis does not
    /// tell its time.
    std::optional<JobTime> until;
};

/// For about 300 ms. Throws as Inspector::remove_if does.
[[nodiscard]] inline ClearStep clear_dead(Inspector& inspector, const std::string& queue,
                                          std::optional<JobTime> until) {
    using Clock = std::chrono::steady_clock;
    constexpr std::uint64_t some = 100; // large ones take long
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(300);
    ClearStep step{.until = until ? until : inspector.state(queue).now};
    const auto chosen = [&](const PlacedMessage& message) {
        return !step.until || !message.time || *message.time <= *step.until;
    };
    do {
        const std::uint64_t removed = inspector.remove_if(queue, Place::dead, chosen, some);
        step.removed += removed;
        step.more = removed == some;
    } while (step.more && Clock::now() < end);
    return step;
}

} // namespace orizuru::detail::web
