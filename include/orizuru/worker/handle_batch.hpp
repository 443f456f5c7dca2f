// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Worker::handle_batch: a handler that gets the jobs of a queue in batches.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/worker/batched_job.hpp>
#include <orizuru/jobs/batch.hpp>
#include <orizuru/worker/job_batch.hpp>
#include <orizuru/worker/worker.hpp>

#include <functional>
#include <span>
#include <string>
#include <utility>

namespace orizuru {

/// @cond
template <class... T>
inline constexpr bool detail::included<detail::Part::handle_batch, T...> = true;
/// @endcond

template <class T, JobBatchHandler<T> F, class>
Worker& Worker::handle_batch(std::string queue, F handler, const BatchOptions& batch,
                             QueueOptions options) {
    detail::check_handler(handler, queue);
    std::function<void(std::span<JobRun* const>)> call =
        [handler = std::move(handler)](std::span<JobRun* const> jobs) mutable {
            handler(JobBatch<T>(jobs));
        };
    const detail::BatchedJobMaker make = &detail::make_batched_job<T>;
    add_batch(std::move(queue), std::move(options), batch, make, std::move(call));
    return *this;
}

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/worker/handle_batch.ipp>
#endif
