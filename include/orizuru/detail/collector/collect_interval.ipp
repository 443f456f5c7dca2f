// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the function of collect_interval.hpp.

#include <orizuru/detail/collector/collecting.hpp>

namespace orizuru {

// Not by std::make_shared, for which the compiler looks at the whole collector even when it is not
// used: a function that deletes is no virtual one.
ORIZURU_INLINE std::shared_ptr<void> CollectInterval::start(const Endpoint& endpoint,
                                                            const Keys& keys,
                                                            std::chrono::milliseconds interval,
                                                            const OnEvent& on_event) {
    void (*const end)(void*) = [](void* running) {
        delete static_cast<detail::Collecting*>(running);
    };
    return {static_cast<void*>(new detail::Collecting(endpoint, keys, interval, on_event)), end};
}

} // namespace orizuru
