// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/sleeping_host.hpp"

#include <orizuru/detail/base/system.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
    const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
    if (result == 0 && clock == orizuru::detail::system::lease_clock) {
        time->tv_sec += orizuru::test::SleepingHost::seconds_asleep();
    }
    return result;
}
