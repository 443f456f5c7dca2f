// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The token of a claim, and the result of claiming an id (once.hpp).

#include <orizuru/jobs/job_time.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace orizuru {

/// Identifies one claim of an id.
struct OnceToken {
    std::string id; ///< as it was given to claim()
    /// Higher than the fence of every earlier claim in the scope, also when Redis was emptied
    /// meanwhile; not when its clock was set back as well, or the clock of the server that took
    /// over is behind. A system that remembers the highest can refuse what comes too late.
    std::uint64_t fence = 0;

    /// True when ids and fences are equal.
    friend bool operator==(const OnceToken&, const OnceToken&) = default;
};

/// The result of Once::claim.
struct Claim {
    /// Says who has the id.
    enum class State {
        claimed, ///< by this call
        busy,    ///< by another claim, whose lease holds
        done     ///< the id was done before: this call claims nothing
    };

    State state;                          ///< says which of the following are set
    OnceToken token = {};                 ///< if claimed
    JobTime until = {};                   ///< if busy: the end of the lease, by Redis' clock
    std::chrono::milliseconds busy_for{}; ///< time from the call to `until`
    std::optional<std::string> result{};  ///< if done, and one was stored
};

} // namespace orizuru
