// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the function of handle_keyed.hpp that is no template.

#include <orizuru/detail/base/arguments.hpp>
#include <orizuru/detail/keyed/order_upkeep.hpp>
#include <orizuru/detail/worker/single_job_queue.hpp>
#include <orizuru/detail/worker/worker_core.hpp>
#include <orizuru/keys.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>

namespace orizuru {

ORIZURU_INLINE void Worker::add_keyed(const std::string& queue, QueueOptions options,
                                      const KeyedOptions& keyed, detail::JobHandling handling) {
    const Keys keys = checked(queue);
    const std::string whose = "queue '" + queue + "'";
    detail::check_time("sweep_interval", keyed.sweep_interval, std::chrono::seconds(1));
    detail::check_count("burst", keyed.burst, 1000);
    if (keyed.burst > 1 && handling.end != detail::JobHandling::End::by_return) {
        throw std::invalid_argument(whose + ": with bursts, its handler must end a job by its "
                                            "return");
    }
    if (options.guarantee == Guarantee::at_most_once) {
        throw std::invalid_argument(whose + ": with keys, it cannot be at_most_once: the next job "
                                            "of a key would not wait for the one that runs");
    }
    const std::string& retry_queue = options.retry.retry_queue;
    if (!retry_queue.empty() && retry_queue != queue) {
        throw std::invalid_argument(whose + ": with keys, it cannot have a retry_queue: the next "
                                            "job of a key would not wait for the one that failed");
    }
    add(queue, std::move(options), std::move(handling));
    queue_of(keys).keep_order(keyed.burst);
    const auto interval =
        m_core->shared->options.collect_interval.value_or(WorkerOptions().collect_interval.value());
    m_core->shared->added_chores.push_back(
        {.what = "keeping the order of its keys",
         .queue = queue,
         .begin = [keys, interval,
                   sweep = keyed.sweep_interval](std::shared_ptr<Connection> connection) {
             const auto upkeep = std::make_shared<detail::OrderUpkeep>(keys, std::move(connection),
                                                                       interval, sweep);
             return [upkeep] { return upkeep->step(); };
         }});
}

} // namespace orizuru
