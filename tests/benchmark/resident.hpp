// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The memory of a process.

#pragma once

#include <unistd.h>

#include <fstream>
#include <string>

namespace orizuru::benchmark {

/// Its part in RAM, in bytes (VmRSS).
[[nodiscard]] inline double resident_bytes(const std::string& process = "self") {
    std::ifstream statm("/proc/" + process + "/statm");
    double pages = 0;
    double resident = 0;
    statm >> pages >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

} // namespace orizuru::benchmark
