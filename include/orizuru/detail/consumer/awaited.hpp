// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The descriptor and the time that a consumer waits for when one thread polls it beside others.

#include <orizuru/detail/base/clock.hpp>

#include <poll.h>

namespace orizuru::detail {

/// Poll the consumer again when `fd` is ready for `events`, unless it is -1, and at `until`.
struct Awaited {
    int fd = -1;
    TimePoint until = TimePoint::max();
    short events = POLLIN;
};

} // namespace orizuru::detail
