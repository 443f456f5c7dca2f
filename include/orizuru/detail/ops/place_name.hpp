// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The words for the places of a queue.

#include <orizuru/ops/queue_state.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace orizuru::detail {

inline constexpr std::array every_place{Place::waiting,  Place::held,      Place::scheduled,
                                        Place::rejected, Place::suspected, Place::dead};
/// Every place but `held`: those messages are their consumers'.
inline constexpr std::array changeable_places{Place::waiting, Place::scheduled, Place::rejected,
                                              Place::suspected, Place::dead};

[[nodiscard]] constexpr std::string_view place_name(Place place) noexcept {
    switch (place) {
    case Place::waiting:
        return "waiting";
    case Place::held:
        return "held";
    case Place::scheduled:
        return "scheduled";
    case Place::rejected:
        return "rejected";
    case Place::suspected:
        return "suspected";
    case Place::dead:
        break;
    }
    return "dead";
}

[[nodiscard]] constexpr std::uint64_t count_in(const QueueState& state, Place place) noexcept {
    switch (place) {
    case Place::waiting:
        return state.waiting;
    case Place::held:
        return state.held;
    case Place::scheduled:
        return state.scheduled;
    case Place::rejected:
        return state.rejected;
    case Place::suspected:
        return state.suspected;
    case Place::dead:
        break;
    }
    return state.dead;
}

/// It has neither messages, groups nor consumers, and is not paused.
[[nodiscard]] inline bool is_at_rest(const QueueState& state) noexcept {
    return std::ranges::all_of(every_place,
                               [&](Place place) { return count_in(state, place) == 0; }) &&
           state.behind == 0 && state.groups == 0 && state.consumers == 0 && !state.paused;
}

[[nodiscard]] constexpr std::optional<Place> to_place(std::string_view name) noexcept {
    for (const Place place : every_place) {
        if (place_name(place) == name) {
            return place;
        }
    }
    return std::nullopt;
}

} // namespace orizuru::detail
