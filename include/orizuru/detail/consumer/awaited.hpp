// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a consumer that one thread polls beside others waits for.

#include <orizuru/detail/base/clock.hpp>

namespace orizuru::detail {

/// Poll the consumer again when `fd` is readable, unless it is -1, and at `until`.
struct Awaited {
    int fd = -1;
    TimePoint until = TimePoint::max();
};

} // namespace orizuru::detail
