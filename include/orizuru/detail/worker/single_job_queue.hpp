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
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/message_guard.hpp>
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

template <class T>
class SingleJobQueue final : public FetchingQueue<T> {
  public:
    using Handler = std::function<void(JobContext<T>&)>;

    SingleJobQueue(std::shared_ptr<WorkerShared> shared, Keys keys, QueueOptions options,
                   Handler handler)
        : FetchingQueue<T>(std::move(shared), std::move(keys), settled(std::move(options))),
          m_handler(std::move(handler)) {}

    std::shared_ptr<Task> take(const std::stop_token& token, Awaited* awaited) override {
        std::shared_ptr<Task> task;
        if (auto guard = this->next(token, awaited, task)) {
            task = std::make_shared<JobTask>(*this, std::move(*guard));
        }
        return task;
    }

  private:
    class JobTask final : public Task {
      public:
        JobTask(SingleJobQueue& queue, MessageGuard<Job<T>>&& guard)
            : m_queue(queue), m_context(queue, std::move(guard)), m_settling(queue, m_context) {}

        void run() noexcept override;
        [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept override {
            return m_settling.retry_at();
        }
        void try_again() noexcept override { m_settling.try_again(); }
        void requeue(std::chrono::milliseconds patience) noexcept override {
            m_settling.requeue(patience);
        }
        [[nodiscard]] const JobRun& job() const noexcept override { return m_context; }

      private:
        SingleJobQueue& m_queue;
        JobContext<T> m_context;
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

template <class T>
void SingleJobQueue<T>::JobTask::run() noexcept {
    try {
        if (m_settling.begin()) {
            m_settling.end(this->handle_in_middleware(m_queue.shared().options, m_context,
                                                      [this] { m_queue.m_handler(m_context); }));
        }
    } catch (...) {
        tell_thrown(
            [this](std::string_view what) { m_settling.tell(WorkerEventKind::unsettled, what); });
    }
}

} // namespace orizuru::detail
