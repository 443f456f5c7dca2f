// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs a handler inside the worker's middleware.

#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// How a run of a handler has ended.
struct Handling {
    bool begun = false;                ///< each middleware has called the next one
    std::optional<std::string> thrown; ///< the text of the exception, if any
    bool for_good = false;             ///< the exception forbids a retry
};

template <class Handle>
void run_in_middleware(const WorkerOptions& options, JobRun& job, const Handle& handle,
                       std::size_t outermost = 0) {
    const auto& around = options.handle_middleware;
    if (outermost == around.size()) {
        handle();
    } else {
        around[outermost](job, [&] { run_in_middleware(options, job, handle, outermost + 1); });
    }
}

template <class Handle>
Handling handle_in_middleware(const WorkerOptions& options, JobRun& job, const Handle& handle) {
    Handling handling;
    try {
        run_in_middleware(options, job, [&] {
            handling.begun = true;
            handle();
        });
    } catch (const DoNotRetry& error) {
        handling.thrown = text_or_less(error.what());
        handling.for_good = true;
    } catch (...) {
        tell_thrown([&](std::string_view what) { handling.thrown = text_or_less(what); });
    }
    return handling;
}

} // namespace orizuru::detail
