// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A worker's queue whose jobs are handled in batches. The jobs of an incomplete batch stay here
// when a wait ends, and are requeued when the worker stops. The acks of a batch go to Redis
// together: one by one they would cost a round trip for each job.

#include <orizuru/consumer.hpp>
#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/job_middleware.hpp>
#include <orizuru/detail/worker/job_settling.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/batch.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/worker/job_batch.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

template <class T>
class JobBatchQueue final : public FetchingQueue<T> {
  public:
    using Handler = std::function<void(JobBatch<T>)>;

    JobBatchQueue(std::shared_ptr<WorkerShared> shared, Keys keys, QueueOptions options,
                  BatchOptions batch, Handler handler)
        : FetchingQueue<T>(std::move(shared), std::move(keys), deferred(std::move(options))),
          m_options(batch),
          m_handler(std::move(handler)) {}

    std::shared_ptr<Task> take(const std::stop_token& token, Awaited* awaited) override;
    [[nodiscard]] std::int64_t most_at_once() const noexcept override {
        return FetchingQueue<T>::most_at_once() * m_options.size;
    }
    [[nodiscard]] std::int64_t jobs_for(int threads) const noexcept override {
        const auto gathered = m_gathered ? static_cast<std::int64_t>(m_gathered->size()) : 0;
        return FetchingQueue<T>::jobs_for(threads) * m_options.size - gathered;
    }
    void requeue_fetched() noexcept override {
        FetchingQueue<T>::requeue_fetched();
        if (m_gathered) {
            std::exchange(m_gathered, nullptr)->requeue({});
        }
    }

  private:
    class BatchTask final : public Task {
      public:
        explicit BatchTask(JobBatchQueue& queue) : m_queue(queue), m_consumer(queue.consumer()) {}

        void add(MessageGuard<Job<T>>&& guard) { m_jobs.emplace_back(m_queue, std::move(guard)); }
        [[nodiscard]] std::size_t size() const noexcept { return m_jobs.size(); }

        void run() noexcept override {
            try {
                handle();
            } catch (...) {
                tell_thrown(
                    [this](std::string_view what) { tell(WorkerEventKind::unsettled, what); });
            }
        }
        [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept override;
        void try_again() noexcept override;
        void requeue(std::chrono::milliseconds patience) noexcept override {
            // The newest first: each goes to the queue's front.
            for (auto job = m_jobs.rbegin(); job != m_jobs.rend(); ++job) {
                job->settling.requeue(patience);
            }
        }
        [[nodiscard]] const JobRun& job() const noexcept override { return m_jobs.front().context; }

      private:
        struct Member {
            Member(JobBatchQueue& queue, MessageGuard<Job<T>>&& guard)
                : context(queue, std::move(guard)), settling(queue, context) {}

            JobContext<T> context;
            JobSettling settling;
        };

        void handle();
        std::vector<Member*> begin();
        std::optional<bool> flush(const std::shared_ptr<Consumer<Job<T>>>& consumer) noexcept;
        bool flush_before_handler();
        void flush_after_handler() {
            if (m_queue.options().guarantee == Guarantee::at_least_once) {
                flush(m_queue.consumer());
            }
        }
        [[nodiscard]] std::chrono::milliseconds next_pause() {
            if (!m_pauses) {
                m_pauses.emplace();
            }
            return m_pauses->next();
        }
        void tell(WorkerEventKind kind, std::string_view detail,
                  std::optional<std::chrono::milliseconds> retry_in = {}) const noexcept {
            m_queue.tell(WorkerEvent{.kind = kind, .detail = detail, .retry_in = retry_in});
        }

        JobBatchQueue& m_queue;
        /// The consumer that fetched the jobs, until they begin: the queue may be closed meanwhile.
        std::shared_ptr<Consumer<Job<T>>> m_consumer;
        std::deque<Member> m_jobs;           // a Member cannot be moved
        std::optional<TimePoint> m_flush_at; ///< when to repeat a flush that Redis refused
        std::optional<JitteredPauses> m_pauses;
    };

    static QueueOptions deferred(QueueOptions options) {
        options.ack = AckMode::deferred;
        return options;
    }

    void gather(MessageGuard<Job<T>>&& guard) {
        if (m_gathered) {
            m_gathered->add(std::move(guard));
            return;
        }
        // Without memory for the first job there is no batch.
        auto gathered = std::make_shared<BatchTask>(*this);
        gathered->add(std::move(guard));
        m_gathered = std::move(gathered);
        m_complete = deadline_in(m_options.time);
    }

    BatchOptions m_options;
    Handler m_handler;
    /// One batch at a time acks first: a flush tells how many acks were late, and not whose.
    std::mutex m_acking_first;
    std::shared_ptr<BatchTask> m_gathered; ///< for the thread inside `take`
    TimePoint m_complete{};                ///< when the time of the gathered batch is over
};

template <class T>
std::shared_ptr<Task> JobBatchQueue<T>::take(const std::stop_token& token, Awaited* awaited) {
    while (true) {
        this->limit_fetch();
        std::shared_ptr<Task> undecoded;
        auto guard = this->next(token, awaited, undecoded);
        if (undecoded) {
            return undecoded; // the gathered jobs wait for more
        }
        const bool more = guard.has_value();
        if (more) {
            gather(std::move(*guard));
        }
        if (m_gathered && (std::cmp_equal(m_gathered->size(), m_options.size) ||
                           (!more && Clock::now() >= m_complete))) {
            return std::exchange(m_gathered, nullptr);
        }
        if (!more) {
            if (awaited != nullptr && m_gathered) {
                awaited->until = std::min(awaited->until, m_complete);
            }
            return nullptr;
        }
    }
}

template <class T>
void JobBatchQueue<T>::BatchTask::handle() {
    std::vector<JobContext<T>*> jobs;
    jobs.reserve(m_jobs.size()); // may throw, so before any job is acked
    const std::vector<Member*> begun = begin();
    if (begun.empty()) {
        return;
    }
    std::ranges::transform(begun, std::back_inserter(jobs),
                           [](Member* job) { return &job->context; });
    const Handling handling = this->handle_in_middleware(
        m_queue.shared().options, *jobs.front(), [&] { m_queue.m_handler(JobBatch<T>(jobs)); });
    for (Member* const job : begun) {
        job->settling.end(handling);
    }
    flush_after_handler();
}

/// Returns the jobs to be handled.
template <class T>
std::vector<typename JobBatchQueue<T>::BatchTask::Member*> JobBatchQueue<T>::BatchTask::begin() {
    std::vector<Member*> begun;
    begun.reserve(m_jobs.size());
    std::unique_lock lock(m_queue.m_acking_first, std::defer_lock);
    const bool acks_first = m_queue.options().guarantee == Guarantee::at_most_once;
    if (acks_first) {
        lock.lock();
    }
    for (Member& job : m_jobs) {
        if (job.settling.begin()) {
            begun.push_back(&job);
        }
    }
    // One of the jobs may run elsewhere, and it is not known which.
    if (acks_first && !flush_before_handler()) {
        begun.clear();
    }
    m_consumer.reset();
    return begun;
}

/// All pending settlements are repeated together, when the last of them is due.
template <class T>
std::optional<TimePoint> JobBatchQueue<T>::BatchTask::retry_at() const noexcept {
    std::optional<TimePoint> at = m_flush_at;
    for (const Member& job : m_jobs) {
        at = std::max(at, job.settling.retry_at());
    }
    return at;
}

template <class T>
void JobBatchQueue<T>::BatchTask::try_again() noexcept {
    for (Member& job : m_jobs) {
        if (job.settling.retry_at()) {
            job.settling.try_again();
        }
    }
    flush_after_handler();
}

/// Waits while Redis refuses, since only this thread can go on with the handler.
template <class T>
bool JobBatchQueue<T>::BatchTask::flush_before_handler() {
    std::optional<bool> flushed = flush(m_consumer);
    while (!flushed && !m_queue.stop_token().stop_requested()) {
        sleep_until(*m_flush_at, m_queue.stop_token());
        flushed = flush(m_consumer);
    }
    m_flush_at.reset();
    return flushed == true;
}

/// Returns whether all acks were in time, and tells when some were not; empty when Redis refuses.
template <class T>
std::optional<bool>
JobBatchQueue<T>::BatchTask::flush(const std::shared_ptr<Consumer<Job<T>>>& consumer) noexcept {
    m_flush_at.reset();
    try {
        // When the queue is closed, the last guard sends the acks that follow a handler.
        const std::size_t late = consumer ? consumer->flush() : 0;
        if (late > 0) {
            tell(WorkerEventKind::lost,
                 std::to_string(late) + " of the acks of a batch came too late");
        }
        return late == 0;
    } catch (const ReplyError& error) {
        const auto pause = next_pause();
        m_flush_at = deadline_in(pause);
        tell(WorkerEventKind::unsettled, error.what(), pause);
        return std::nullopt;
    } catch (...) {
        // The flush goes on in the background.
        tell_thrown([this](std::string_view what) { tell(WorkerEventKind::unsettled, what); });
        return false;
    }
}

} // namespace orizuru::detail
