// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The words for the progress of a group.

#include <orizuru/jobs/group/group_state.hpp>

namespace orizuru::detail {

[[nodiscard]] constexpr const char* stage_name(GroupStage stage) noexcept {
    switch (stage) {
    case GroupStage::open:
        return "open";
    case GroupStage::waiting:
        return "waiting";
    case GroupStage::done:
        return "done";
    case GroupStage::gone:
        break;
    }
    return "gone";
}

} // namespace orizuru::detail
