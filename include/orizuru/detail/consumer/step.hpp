// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Decides what a thread that takes a queue's messages does next, without doing it: `next` then
// waits, and a worker's poll says what it would wait for.

#include <cstdint>

namespace orizuru::detail {

enum class Step : std::uint8_t {
    stop,         ///< end the wait in Redis and the call
    hand_out,     ///< take over messages of the mirror
    refuse,       ///< throw a noted refusal
    recover,      ///< wait until the list is adopted
    ask_suspect,  ///< end the wait in Redis, then ask for a suspect
    await_fetch,  ///< wait for the reply to a fetch on the link
    await_waiter, ///< wait for the reply to BLMOVE or LMOVE, or behind a BLMOVE that was ended
    end_block,    ///< end the wait in Redis
    look,         ///< send LMOVE on the waiter's connection
    fetch,        ///< send a fetch on the link
    block,        ///< send BLMOVE on the waiter's connection, which may have to connect first
    give_up       ///< return without a message
};

/// Conditions that decide the next step.
struct StepInputs {
    enum class Time : std::uint8_t {
        left, ///< the caller can wait
        up,   ///< anything not asked yet is asked once, and replies get a moment
        over  ///< no step may wait for Redis
    };
    /// The unanswered request for messages; there is one at the most.
    enum class Asked : std::uint8_t { nothing, fetch, look, block };

    Time time = Time::left;
    Asked asked = Asked::nothing;
    bool interrupted = false;     ///< by a stop
    bool ready = false;           ///< the mirror has messages to hand out
    bool refused = false;         ///< a refusal is noted for the user
    bool running = true;          ///< registered, and not in doubt
    bool suspects = false;        ///< suspects wait, and were not asked for in vain just now
    bool looked = false;          ///< Redis had nothing since the last message
    bool in_batches = false;      ///< a fetch brings more than BLMOVE would
    bool acks = false;            ///< deferred acks wait for a request to ride on
    bool short_of_memory = false; ///< Redis refuses BLMOVE and LMOVE, not scripts
    bool by_waiter = false;       ///< messages are too large for the link, and the waiter connected
    bool marker_due = false;      ///< a reply is due behind a BLMOVE that was ended
};

[[nodiscard]] constexpr Step step(const StepInputs& now) noexcept {
    using Time = StepInputs::Time;
    using Asked = StepInputs::Asked;
    const bool late = now.time != Time::left;
    if (now.interrupted) {
        return Step::stop;
    }
    if (now.ready) {
        return Step::hand_out;
    }
    if (now.refused) {
        return Step::refuse;
    }
    if (now.time == Time::over || (late && !now.running)) {
        return Step::give_up;
    }
    if (!now.running) {
        return Step::recover;
    }
    // Between two fetches, and before the wait that may follow.
    if (now.suspects && now.asked != Asked::fetch) {
        return Step::ask_suspect;
    }
    if (now.asked == Asked::fetch) {
        return Step::await_fetch;
    }
    if (now.asked != Asked::nothing) {
        return now.asked == Asked::block && late ? Step::end_block : Step::await_waiter;
    }
    if (!now.looked && (late || now.in_batches || now.acks || now.short_of_memory)) {
        if (now.acks || !now.by_waiter) {
            return Step::fetch;
        }
        if (late) {
            return now.marker_due ? Step::await_waiter : Step::look;
        }
        // BLMOVE asks as well.
    }
    if (late) {
        return Step::give_up;
    }
    return now.marker_due ? Step::await_waiter : Step::block;
}

} // namespace orizuru::detail
