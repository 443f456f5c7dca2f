// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the function of handle_batch.hpp that is no template.

#include <orizuru/detail/worker/job_batch_queue.hpp>
#include <orizuru/detail/worker/worker_checks.hpp>
#include <orizuru/detail/worker/worker_core.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace orizuru {

ORIZURU_INLINE void Worker::add_batch(std::string queue, QueueOptions options,
                                      const BatchOptions& batch, detail::BatchedJobMaker make,
                                      std::function<void(std::span<JobRun* const>)> handler) {
    Keys keys = checked(std::move(queue));
    detail::validate(options, "queue '" + keys.source() + "'");
    detail::validate(batch);
    if (std::ranges::any_of(m_core->queues,
                            [&](const auto& other) { return other->queue() == keys.source(); })) {
        throw std::invalid_argument("queue '" + keys.source() + "' is handled already");
    }
    m_core->queues.push_back(std::make_shared<detail::JobBatchQueue>(
        m_core->shared, std::move(keys), std::move(options), batch, make, std::move(handler)));
}

} // namespace orizuru
