// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A worker's queue whose jobs are handled one by one.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/job_task.hpp>
#include <orizuru/detail/worker/job_type.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace orizuru::detail {

class SingleJobQueue final : public FetchingQueue {
  public:
    [[gnu::cold]] SingleJobQueue(std::shared_ptr<WorkerShared> shared, Keys keys,
                                 QueueOptions options, JobTaskMaker make, JobTask::Handler handler)
        : FetchingQueue(std::move(shared), std::move(keys), settled(std::move(options))),
          m_make(make),
          m_handler(std::move(handler)) {}

    std::shared_ptr<Task> take(const std::stop_token& token, Awaited* awaited) override {
        std::shared_ptr<Task> task;
        next(token, awaited, task, [&](const std::string& payload) -> GuardCore& {
            auto job = m_make(*this, payload, scratch(), m_handler);
            GuardCore& guard = guard_of(job->job());
            task = std::move(job);
            return guard;
        });
        return task;
    }

  private:
    static QueueOptions settled(QueueOptions options) {
        if (options.guarantee == Guarantee::at_most_once) {
            options.ack = AckMode::immediate; // the ack is in Redis before the handler runs
        }
        return options;
    }

    JobTaskMaker m_make;
    JobTask::Handler m_handler;
};

} // namespace orizuru::detail
