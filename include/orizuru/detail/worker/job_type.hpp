// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// All that a worker knows of the type of its jobs: how to decode one, and how to call the handler.

#include <orizuru/codec.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/worker/job_context.hpp>

#include <memory>
#include <string_view>

namespace orizuru::detail {

/// Decodes a job; its guard has nothing to settle yet. Throws what the Codec throws.
using JobMaker = std::unique_ptr<JobRun> (*)(JobHost& host, std::string_view payload,
                                             Scratch& scratch);

template <class T>
[[nodiscard]] std::unique_ptr<JobRun> make_job_run(JobHost& host, std::string_view payload,
                                                   Scratch& scratch) {
    return std::make_unique<JobContext<T>>(host, payload, scratch);
}

/// Calls the handler in the first form that it accepts.
template <class T, JobHandler<T> F>
void call_handler(F& handler, JobContext<T>& context) {
    if constexpr (HandlerOf<F, const T&, JobContext<T>&>) {
        handler(context->payload, context);
    } else if constexpr (HandlerOf<F, const Job<T>&, JobContext<T>&>) {
        handler(*context, context);
    } else if constexpr (HandlerOf<F, const T&>) {
        handler(context->payload);
    } else if constexpr (HandlerOf<F, JobContext<T>&>) {
        handler(context);
    } else {
        handler(*context);
    }
}

} // namespace orizuru::detail
