// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Which of the messages that were read a predicate chooses, and where they stand.

#include <orizuru/ops/queue_state.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

struct Choice {
    std::vector<PlacedMessage> messages;
    std::size_t begin = 0;     ///< where the first of them stands, among those looked at
    std::size_t end = 0;       ///< behind the last of them
    std::size_t looked_at = 0; ///< number of messages looked at
    std::uint64_t bytes = 0;   ///< these have
    std::string last_kept;     ///< the last one that was not chosen; empty: there is none
};

/// Takes those out of `found` that `chosen` returns true for; looks no further than `most` of them.
template <class Chosen>
[[nodiscard]] Choice choose(std::vector<PlacedMessage>& found, const Chosen& chosen,
                            std::uint64_t most) {
    Choice choice;
    for (PlacedMessage& message : found) {
        if (choice.messages.size() == most) {
            break;
        }
        choice.bytes += message.bytes.size();
        if (chosen(std::as_const(message))) {
            choice.begin = choice.messages.empty() ? choice.looked_at : choice.begin;
            choice.end = choice.looked_at + 1;
            choice.messages.push_back(std::move(message));
        } else {
            choice.last_kept = std::move(message.bytes);
        }
        ++choice.looked_at;
    }
    return choice;
}

} // namespace orizuru::detail
