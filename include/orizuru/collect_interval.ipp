// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the function of collect_interval.hpp.

#include <orizuru/detail/collector/collecting.hpp>

namespace orizuru {

ORIZURU_INLINE CollectInterval::Running CollectInterval::start(const Endpoint& endpoint,
                                                               const Keys& keys,
                                                               std::chrono::milliseconds interval,
                                                               const OnEvent& on_event) {
    return {new detail::Collecting(endpoint, keys, interval, on_event),
            [](detail::Collecting* collecting) { delete collecting; }};
}

} // namespace orizuru
