// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The rules of a time zone: its local time for a moment, and the moment of a local time.

#include <chrono>
#include <functional>

namespace orizuru::detail {

struct ZoneRules {
    std::function<std::chrono::local_seconds(std::chrono::sys_seconds)> to_local;
    std::function<std::chrono::sys_seconds(std::chrono::local_seconds)> to_sys;
};

inline ZoneRules fixed_zone(std::chrono::minutes offset) {
    return {
        [offset](std::chrono::sys_seconds time) {
            return std::chrono::local_seconds(time.time_since_epoch() + offset);
        },
        [offset](std::chrono::local_seconds time) {
            return std::chrono::sys_seconds(time.time_since_epoch() - offset);
        },
    };
}

} // namespace orizuru::detail
