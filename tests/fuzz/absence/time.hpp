// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The time of a simulation, in milliseconds. It passes from event to event.

#pragma once

#include <cstdint>
#include <limits>

namespace orizuru::test {

using Millis = std::int64_t;
inline constexpr Millis never = std::numeric_limits<Millis>::max();

} // namespace orizuru::test
