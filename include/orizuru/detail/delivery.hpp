// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A message that a consumer holds: shared between the consumer's window and the message's guard.

#include <orizuru/script.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Where a settlement other than an ack takes the message.
struct Move {
    Move(Script how, std::vector<std::string> key_names, std::vector<std::string> arguments)
        : script(std::move(how)), keys(std::move(key_names)), args(std::move(arguments)) {}

    Script script;
    std::vector<std::string> keys;
    std::vector<std::string> args;
};

struct Delivery {
    enum class State : std::uint8_t {
        held,    ///< in the list, no settlement under way
        wanted,  ///< a settlement is asked for and not sent
        sent,    ///< the settlement, or the giving back, is sent and not answered
        settled, ///< it ran
        lost     ///< the lease was lost first: the message is someone else's
    };

    explicit Delivery(std::string bytes) : payload(std::move(bytes)) {}

    std::string payload;
    std::unique_ptr<Move> move; ///< what is wanted; null = ack
    std::string refusal;        ///< why Redis refused the settlement; then the state is held
    State state = State::held;
    bool handed_out = false; ///< to a guard
    bool deferred = false;   ///< an ack that was accepted and whose outcome nobody awaits
    bool unattended = false; ///< nobody awaits the outcome: it goes to on_event
    int failures = 0;        ///< how often the settlement failed for a reason of its own
};

using DeliveryPtr = std::shared_ptr<Delivery>;

} // namespace orizuru::detail
