// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The progress of a group of jobs (group.hpp).

#include <cstdint>

namespace orizuru {

/// Tells how far a group is.
enum class GroupStage {
    open,    ///< not committed: more members may come
    waiting, ///< committed, and some members have not ended
    done,    ///< all have ended; for an hour
    gone     ///< it was not committed in time, or was done more than an hour ago
};

/// A group at one moment.
struct GroupState {
    GroupStage stage = GroupStage::gone; ///< its progress
    std::uint64_t jobs = 0;              ///< pushed in all
    std::uint64_t pending = 0;           ///< which have not ended
    std::uint64_t failed = 0;            ///< which have died, with OnDead::count
};

} // namespace orizuru
