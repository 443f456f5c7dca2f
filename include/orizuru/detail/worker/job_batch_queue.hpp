// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A worker's queue whose jobs are handled in batches. The jobs of an incomplete batch stay here
// when a wait ends, and are requeued when the worker stops. The acks of a batch go to Redis
// together: one by one they would cost a round trip for each job.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/thrown.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/consumer/consumer_core.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/worker/batched_job.hpp>
#include <orizuru/detail/worker/fetching_queue.hpp>
#include <orizuru/detail/worker/job_middleware.hpp>
#include <orizuru/detail/worker/job_type.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/settling/acks_together.hpp>
#include <orizuru/detail/worker/settling/job_settling.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/jobs/batch.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class JobBatchQueue final : public FetchingQueue {
  public:
    using Handler = std::function<void(std::span<JobRun* const>)>;

    [[gnu::cold]] JobBatchQueue(std::shared_ptr<WorkerShared> shared, Keys keys,
                                QueueOptions options, BatchOptions batch, BatchedJobMaker make,
                                Handler handler)
        : FetchingQueue(std::move(shared), std::move(keys), deferred(std::move(options))),
          m_options(batch),
          m_make(make),
          m_handler(std::move(handler)) {}

    // This `inline`, like those below, keeps files that only include this from emitting the class.
    inline std::shared_ptr<Task> take(const std::stop_token& token, Awaited* awaited) override;
    [[nodiscard]] std::int64_t most_at_once() const noexcept override {
        return FetchingQueue::most_at_once() * m_options.size;
    }
    [[nodiscard]] bool in_batches() const noexcept override { return true; }
    [[nodiscard]] std::int64_t jobs_for(int threads) const noexcept override {
        const auto gathered = m_gathered ? static_cast<std::int64_t>(m_gathered->size()) : 0;
        return FetchingQueue::jobs_for(threads) * m_options.size - gathered;
    }
    void requeue_fetched() noexcept override {
        FetchingQueue::requeue_fetched();
        if (m_gathered) {
            std::exchange(m_gathered, nullptr)->requeue({});
        }
    }

  private:
    class BatchTask final : public Task {
      public:
        explicit BatchTask(JobBatchQueue& queue)
            : m_queue(queue), m_consumer(queue.consumer()), m_acks(queue) {}

        /// For the next job that is added.
        void make_room() {
            if (m_jobs.size() == m_jobs.capacity()) {
                m_jobs.reserve(2 * m_jobs.size() + 1);
            }
        }
        void add(std::unique_ptr<BatchedJob> job) noexcept { m_jobs.push_back(std::move(job)); }
        [[nodiscard]] bool ends_with_suspect() const noexcept {
            return guard_of(m_jobs.back()->run()).suspected();
        }
        [[nodiscard]] std::unique_ptr<BatchedJob> take_last() noexcept {
            auto last = std::move(m_jobs.back());
            m_jobs.pop_back();
            return last;
        }
        void take_place() noexcept { m_place.emplace(m_queue); }
        [[nodiscard]] std::size_t size() const noexcept { return m_jobs.size(); }

        Ran run(TimePoint /*ended*/) noexcept override {
            try {
                if (permitted()) {
                    handle();
                } else {
                    requeue({});
                }
            } catch (...) {
                tell_thrown(
                    [this](std::string_view what) { tell(WorkerEventKind::unsettled, what); });
            }
            return {retry_at().has_value()};
        }
        [[nodiscard]] inline std::optional<TimePoint> retry_at() const noexcept override;
        inline void try_again() noexcept override;
        void requeue(std::chrono::milliseconds patience) noexcept override {
            // The newest first: each goes to the queue's front.
            std::for_each(m_jobs.rbegin(), m_jobs.rend(),
                          [&](const auto& job) { job->settling().requeue().run(patience); });
        }
        [[nodiscard]] const JobRun& job() const noexcept override { return m_jobs.front()->run(); }
        void each_job(FunctionRef<void(const JobRun&)> take) const override {
            std::ranges::for_each(m_jobs, [&](const auto& job) { take(job->run()); });
        }
        /// Only tells that it goes on: the handler has the others as well.
        void cancel(std::string_view job_id, std::string_view /*reason*/) override {
            for (const auto& job : m_jobs) {
                if (job->run().id() == job_id) {
                    job->settling().reports().tell(WorkerEventKind::cancelled_too_late,
                                                   "a job of a batch is not cancelled");
                    m_queue.cancellations().end(job_id);
                }
            }
        }

      private:
        void handle();
        void begin(std::vector<JobRun*>& jobs);
        bool flush_before_handler();
        void flush_after_handler() {
            if (m_queue.options().guarantee == Guarantee::at_least_once) {
                m_acks.flush([this] { return m_queue.flush_acks(); });
            }
        }
        void tell(WorkerEventKind kind, std::string_view detail) const noexcept {
            m_queue.tell(WorkerEvent{.kind = kind, .detail = detail});
        }

        JobBatchQueue& m_queue;
        /// The consumer that fetched the jobs, until they begin: the queue may be closed meanwhile.
        std::shared_ptr<ConsumerCore> m_consumer;
        std::optional<ServedQueue::Place> m_place; ///< once it is complete
        std::vector<std::unique_ptr<BatchedJob>> m_jobs;
        AcksTogether m_acks;
    };

    static QueueOptions deferred(QueueOptions options) {
        options.ack = AckMode::deferred;
        return options;
    }

    /// Makes a job of the gathered batch. All other memory comes first: once the job is made,
    /// nothing can fail.
    GuardCore& gather(const std::string& payload) {
        std::shared_ptr<BatchTask> first;
        if (!m_gathered) {
            first = std::make_shared<BatchTask>(*this);
        }
        BatchTask& batch = first ? *first : *m_gathered;
        batch.make_room();
        std::unique_ptr<BatchedJob> job = m_make(*this, payload, scratch());
        GuardCore& guard = guard_of(job->run());
        batch.add(std::move(job));
        if (first) {
            m_gathered = std::move(first);
            m_complete = deadline_in(m_options.time);
        }
        return guard;
    }

    /// Makes a batch of the last job gathered alone.
    std::shared_ptr<Task> last_alone() {
        auto alone = std::make_shared<BatchTask>(*this);
        alone->make_room();
        alone->add(m_gathered->take_last());
        alone->take_place();
        if (m_gathered->size() == 0) {
            m_gathered.reset();
        }
        return alone;
    }

    std::shared_ptr<Task> complete() noexcept {
        m_gathered->take_place();
        return std::exchange(m_gathered, nullptr);
    }

    BatchOptions m_options;
    BatchedJobMaker m_make;
    Handler m_handler;
    /// One batch at a time acks first: a flush tells how many acks were late, and not whose.
    std::mutex m_acking_first;
    std::shared_ptr<BatchTask> m_gathered; ///< for the thread inside `take`
    TimePoint m_complete{};                ///< end of the gathered batch's time
};

inline std::shared_ptr<Task> JobBatchQueue::take(const std::stop_token& token, Awaited* awaited) {
    if (full()) {
        return nullptr;
    }
    while (true) {
        limit_fetch();
        std::shared_ptr<Task> undecoded;
        bool more = false;
        try {
            more =
                next(token, awaited, undecoded,
                     [this](const std::string& payload) -> GuardCore& { return gather(payload); });
            if (more && m_gathered->ends_with_suspect()) {
                return last_alone();
            }
        } catch (const std::bad_alloc&) {
            // Nobody knows how long memory stays short, and handling the batch frees some.
            if (m_gathered) {
                return complete();
            }
            throw;
        }
        if (undecoded) {
            return undecoded; // the gathered jobs wait for more
        }
        const bool in_time = !more && Clock::now() >= m_complete;
        if (m_gathered && in_time && awaited != nullptr && options().concurrency) {
            awaited = nullptr; // the queue may be full now: nothing must wait in Redis for it
            continue;
        }
        if (m_gathered && (std::cmp_equal(m_gathered->size(), m_options.size) || in_time)) {
            return complete();
        }
        if (!more) {
            if (awaited != nullptr && m_gathered) {
                awaited->until = std::min(awaited->until, m_complete);
            }
            return nullptr;
        }
    }
}

inline void JobBatchQueue::BatchTask::handle() {
    std::vector<JobRun*> jobs;
    jobs.reserve(m_jobs.size()); // may throw, so before any job is acked
    begin(jobs);
    if (jobs.empty()) {
        return;
    }
    const Handling handling = handle_in_middleware(
        m_queue.shared(), jobs, m_queue.options().time_limit, [&] { m_queue.m_handler(jobs); });
    const auto end = [&](const auto& job) {
        if (job->begun()) {
            job->settling().end(handling);
        }
    };
    if (handling.interrupted) { // each goes to the queue's front, so the newest goes first
        std::for_each(m_jobs.rbegin(), m_jobs.rend(), end);
    } else {
        std::ranges::for_each(m_jobs, end);
    }
    flush_after_handler();
}

/// Adds the jobs to be handled; there is room for them.
inline void JobBatchQueue::BatchTask::begin(std::vector<JobRun*>& jobs) {
    std::unique_lock lock(m_queue.m_acking_first, std::defer_lock);
    const bool acks_first = m_queue.options().guarantee == Guarantee::at_most_once;
    if (acks_first) {
        lock.lock();
    }
    for (const auto& job : m_jobs) {
        if (job->begin()) {
            jobs.push_back(&job->run());
        }
    }
    // One of the jobs may run elsewhere, and it is not known which.
    if (acks_first && !flush_before_handler()) {
        jobs.clear();
    }
    m_consumer.reset();
}

/// All pending settlements are repeated together, when the last of them is due.
inline std::optional<TimePoint> JobBatchQueue::BatchTask::retry_at() const noexcept {
    std::optional<TimePoint> at = m_acks.retry_at();
    for (const auto& job : m_jobs) {
        at = std::max(at, job->settling().retry_at());
    }
    return at;
}

inline void JobBatchQueue::BatchTask::try_again() noexcept {
    for (const auto& job : m_jobs) {
        if (job->settling().retry_at()) {
            job->settling().try_again();
        }
    }
    flush_after_handler();
}

/// Waits while Redis refuses, since only this thread can go on with the handler.
inline bool JobBatchQueue::BatchTask::flush_before_handler() {
    const auto send = [this] { return m_consumer->flush(); };
    std::optional<bool> flushed = m_acks.flush(send);
    while (!flushed && !m_queue.stop_token().stop_requested()) {
        sleep_until(*m_acks.retry_at(), m_queue.stop_token());
        flushed = m_acks.flush(send);
    }
    m_acks.give_up();
    return flushed == true;
}

} // namespace orizuru::detail
