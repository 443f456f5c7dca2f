// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The loop of background work; it waits out outages.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/error.hpp>

#include <stop_token>

namespace orizuru::detail {

/// Calls `step` repeatedly, each time at the time that the previous call returned, until a stop is
/// requested. After a ConnectionError, a ProtocolError or a passing ReplyError it pauses, longer
/// each time. All other exceptions of `step` pass through.
inline void run_until_stopped(const std::stop_token& token, FunctionRef<TimePoint()> step) {
    JitteredPauses backoff;
    while (!token.stop_requested()) {
        TimePoint next{};
        try {
            next = step();
            backoff.reset();
        } catch (const ReplyError& error) {
            if (!is_for_now(error)) {
                throw;
            }
            next = deadline_in(backoff.next());
        } catch (const ConnectionError&) {
            next = deadline_in(backoff.next());
        } catch (const ProtocolError&) {
            next = deadline_in(backoff.next());
        }
        sleep_until(next, token);
    }
}

} // namespace orizuru::detail
