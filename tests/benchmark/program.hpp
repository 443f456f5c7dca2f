// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Runs the workload that the command line names.

#pragma once

#include "benchmark/options.hpp"
#include "benchmark/placement.hpp"

#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

namespace orizuru::benchmark {

using Workloads = std::map<std::string, void (*)(const Options&)>;

[[nodiscard]] inline int run(int argc, char** argv, const Workloads& workloads) {
    try {
        const Options options(argc, argv);
        const auto found = workloads.find(options.workload());
        if (found == workloads.end()) {
            throw std::invalid_argument("unknown workload: " + options.workload());
        }
        on_its_cpu(options, [&] { found->second(options); });
        return 0;
    } catch (const std::exception& error) {
        std::cerr << argv[0] << ": " << error.what() << std::endl;
        return 1;
    }
}

} // namespace orizuru::benchmark
