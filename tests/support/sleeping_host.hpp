// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Lets the process see what it sees when its host was asleep: the clock of leases is ahead, while
// CLOCK_MONOTONIC, on Linux, has stood still. sleeping_host.cpp, to be linked with the program,
// replaces the C library's clock_gettime; sanitizers bring one of their own.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace orizuru::test {

class SleepingHost {
  public:
    static void sleep(std::chrono::seconds time) noexcept { s_asleep += time.count(); }
    [[nodiscard]] static std::int64_t seconds_asleep() noexcept { return s_asleep; }

  private:
    static inline std::atomic<std::int64_t> s_asleep{0};
};

} // namespace orizuru::test
