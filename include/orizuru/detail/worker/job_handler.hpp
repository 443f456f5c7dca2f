// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Calls a job handler in the first form that it accepts.

#include <orizuru/jobs/job.hpp>
#include <orizuru/worker/job_context.hpp>

namespace orizuru::detail {

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
