// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// On which CPU a workload runs: Redis' CPU may be kept from a program that may use both.

#pragma once

#include "benchmark/options.hpp"

#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>

namespace orizuru::benchmark {

/// Runs `action` in a thread that is bound to the CPU of the option `cpu`; without one, at once.
/// The process itself stays unbound: the library may poll before it sleeps.
template <class Action>
void on_its_cpu(const Options& options, Action action) {
    if (!options.has("cpu")) {
        action();
        return;
    }
    std::exception_ptr error;
    std::thread([&] {
        try {
            cpu_set_t cpus;
            CPU_ZERO(&cpus);
            CPU_SET(static_cast<std::size_t>(options.number("cpu")), &cpus);
            if (::sched_setaffinity(0, sizeof cpus, &cpus) != 0) {
                throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
            }
            action();
        } catch (...) {
            error = std::current_exception();
        }
    }).join();
    if (error) {
        std::rethrow_exception(error);
    }
}

} // namespace orizuru::benchmark
