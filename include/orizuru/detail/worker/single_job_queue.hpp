// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A worker's queue whose jobs are handled one by one.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/job_settling.hpp>
#include <orizuru/detail/worker/job_type.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class SingleJobQueue final : public FetchingQueue {
  public:
    using Handler = std::function<void(JobRun&)>;

    [[gnu::cold]] SingleJobQueue(std::shared_ptr<WorkerShared> shared, Keys keys,
                                 QueueOptions options, JobMaker make, Handler handler)
        : FetchingQueue(std::move(shared), std::move(keys), settled(std::move(options)), make),
          m_handler(std::move(handler)) {}

    std::shared_ptr<Task> take(const std::stop_token& token, Awaited* awaited) override {
        std::shared_ptr<Task> task;
        next(token, awaited, task, [&](std::unique_ptr<JobRun> run) {
            task = std::make_shared<JobTask>(*this, std::move(run));
        });
        return task;
    }

  private:
    class JobTask final : public Task {
      public:
        JobTask(SingleJobQueue& queue, std::unique_ptr<JobRun> run)
            : m_queue(queue), m_run(std::move(run)), m_settling(queue, *m_run) {}

        // This `inline` keeps files that only include this from emitting the class.
        inline void run() noexcept override;
        [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept override {
            return m_settling.retry_at();
        }
        void try_again() noexcept override { m_settling.try_again(); }
        void requeue(std::chrono::milliseconds patience) noexcept override {
            m_settling.requeue(patience);
        }
        [[nodiscard]] const JobRun& job() const noexcept override { return *m_run; }

      private:
        SingleJobQueue& m_queue;
        std::unique_ptr<JobRun> m_run;
        JobSettling m_settling;
    };

    static QueueOptions settled(QueueOptions options) {
        if (options.guarantee == Guarantee::at_most_once) {
            options.ack = AckMode::immediate; // the ack is in Redis before the handler runs
        }
        return options;
    }

    Handler m_handler;
};

inline void SingleJobQueue::JobTask::run() noexcept {
    try {
        if (m_settling.begin()) {
            m_settling.end(handle_in_middleware(m_queue.shared().options, *m_run,
                                                [this] { m_queue.m_handler(*m_run); }));
        }
    } catch (...) {
        tell_thrown(
            [this](std::string_view what) { m_settling.tell(WorkerEventKind::unsettled, what); });
    }
}

} // namespace orizuru::detail
