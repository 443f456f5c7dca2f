// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Worker::handle_shards: a handler for the jobs of a queue over many shards.

#include <orizuru/shards/shards.hpp>
#include <orizuru/worker/worker.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace orizuru {

template <class T, JobHandler<T> F>
Worker& Worker::handle_shards(const std::string& queue, F handler, const QueueOptions& options) {
    detail::check_handler(handler, queue);
    // One handler for all.
    const auto shared =
        std::make_shared<std::function<void(JobRun&)>>(detail::job_call<T>(std::move(handler)));
    add_shards(shards(m_endpoint, queue), options, &detail::make_job_task<T>,
               [shared](JobRun& job) { (*shared)(job); });
    return *this;
}

} // namespace orizuru
