// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A rate: at most so many in any span of that length.

#include <chrono>

namespace orizuru {

/// A rate.
struct Rate {
    /// 1 to 1,000,000 permits.
    int most = 1;
    /// In each span of this length, 1 ms to 24 h.
    std::chrono::milliseconds per = std::chrono::seconds(1);
};

} // namespace orizuru
