// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue of a worker that fetches its jobs as a consumer: what the thread that polls asks of it.

#include <orizuru/codec.hpp>
#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/timeout.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/awaited.hpp>
#include <orizuru/detail/consumer/consumer_core.hpp>
#include <orizuru/detail/consumer/guard_access.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/detail/jobs/group/forwarding.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/detail/redis/limits.hpp>
#include <orizuru/detail/worker/job_type.hpp>
#include <orizuru/detail/worker/limits/queue_limit.hpp>
#include <orizuru/detail/worker/queue_consumers.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/unhandled_jobs.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// The options of a queue's consumer.
[[nodiscard]] inline ConsumerOptions consumer_options(const WorkerOptions& options,
                                                      const QueueOptions& of_queue) {
    return {.name = options.name,
            .lease = of_queue.lease,
            .prefetch = of_queue.prefetch,
            .ack = of_queue.ack,
            .max_payload = of_queue.max_payload,
            .on_beat = of_queue.on_beat};
}

class FetchingQueue : public ServedQueue {
  public:
    using ServedQueue::ServedQueue;

    /// Returns the next task; null when there is none now, or when `token` requests a stop. With
    /// `awaited` it then begins or continues to wait for one in Redis, and says when to call it
    /// again; without, it asks Redis once, and ends such a wait. For one thread at a time. Throws
    /// as Consumer::next does.
    virtual std::shared_ptr<Task> take(const std::stop_token& token, Awaited* awaited) = 0;
    /// All queues of its worker share a link. While open.
    [[nodiscard]] bool shares_link() const noexcept { return share_a_link(*m_links); }
    /// False when a few threads can begin all its jobs.
    [[nodiscard]] virtual bool needs_threads() const noexcept { return true; }
    /// Registers on its link. `news` is signalled when a task may be there although what
    /// `take` awaits has not come. Throws as Consumer's constructor does.
    void open(std::shared_ptr<NodeLinks> links, std::shared_ptr<const Wake> news) {
        m_links = std::move(links);
        m_news = std::move(news);
        m_consumers.forget_end();
        connect();
    }
    /// Tells how many threads are free for the tasks of the next fetch, and how many it may bring
    /// at most. For the thread that calls `take`, before it. Connects again when the queue was
    /// closed. Throws as open() does.
    void bound(int free, int most) {
        if (m_consumers.get() == nullptr) {
            connect();
        }
        m_free = std::min(free, most);
        m_most = in_batches() ? largest_batch : most;
        limit_fetch();
    }
    /// Returns for how many tasks these threads have room.
    [[nodiscard]] int room(int free) const noexcept {
        return bounded(in_batches() ? FetchingQueue::jobs_for(free) : this->jobs_for(free));
    }
    /// Null where it has none. Any thread.
    [[nodiscard]] QueueLimit* limit() const noexcept { return m_limit.get(); }
    [[nodiscard]] bool holds_limit(TimePoint taken_at) const noexcept override {
        return !m_limit || m_limit->holds(taken_at);
    }
    /// Before open().
    void set_limit(LimitMaker make) { m_make_limit = std::move(make); }
    [[nodiscard]] bool is_limited() const noexcept { return m_make_limit != nullptr; }
    /// Begins to ask for its limit, if it has one, behind open(). Throws as LimitMaker says.
    void open_limit(const Endpoint& endpoint) {
        if (m_make_limit) {
            m_limit = m_make_limit(*this, endpoint, m_news);
        }
    }
    void mark_suspects() noexcept override {
        if (const auto open = consumer()) {
            open->mark_suspects();
        }
    }
    std::size_t flush_acks() override { return m_consumers.flush(); }
    [[nodiscard]] std::string consumer_id() override {
        const auto open = consumer();
        return open ? open->id() : std::string();
    }
    /// Returns how many jobs were fetched and not taken yet.
    [[nodiscard]] std::size_t in_hand() const noexcept {
        const ConsumerCore* const consumer = m_consumers.get();
        return consumer != nullptr ? consumer->in_hand() : 0;
    }
    /// True when jobs that `take` has asked for may still come, or have come meanwhile; not when
    /// the queue fetches ahead, and so holds jobs beside busy threads. For `take`'s thread.
    [[nodiscard]] bool is_late() {
        ConsumerCore* const consumer = m_consumers.get();
        return consumer != nullptr && !fetches_ahead() && consumer->expects_message();
    }
    /// True when such jobs are in hand. For the same thread, while no other is free.
    [[nodiscard]] bool has_surplus() const noexcept { return !fetches_ahead() && in_hand() > 0; }
    /// Requeues all jobs that were fetched and not taken. For the thread that calls `take`, before
    /// close().
    virtual void requeue_fetched() noexcept {
        ConsumerCore* const consumer = m_consumers.get();
        if (consumer == nullptr) {
            return;
        }
        consumer->stop();
        Timeout timeout(std::chrono::milliseconds(0));
        std::optional<MessageGuard<Raw>> guard; // there is none after a stop
        try {
            consumer->next({}, timeout, [&](const std::string& payload) -> GuardCore& {
                guard.emplace(GuardAccess::decoded<Raw>(payload, m_scratch));
                return GuardAccess::core(*guard);
            });
        } catch (...) { // NOLINT(bugprone-empty-catch)
            // The consumer's destructor tries again.
        }
    }
    /// No call waits for Redis beyond `deadline` any more, until the queue is closed. Any thread.
    void end_by(TimePoint deadline) noexcept { m_consumers.end_by(deadline); }
    /// Closes the consumer, until bound().
    void disconnect() noexcept { m_consumers.close(); }
    [[nodiscard]] TimePoint take_time() noexcept override {
        TimePoint last = m_taken_at.load(std::memory_order_relaxed);
        while (!m_taken_at.compare_exchange_weak(last, last + Clock::duration(1),
                                                 std::memory_order_relaxed)) {
        }
        return last + Clock::duration(1);
    }
    /// Begins to give its share in a limit back, which close() awaits until then.
    void end_limit_by(TimePoint time) noexcept {
        if (m_limit) {
            m_limit->request_end();
            m_end_limit_by = time;
        }
    }
    /// Does the same until `open`, and lets go of the links.
    void close() noexcept {
        if (m_limit) {
            m_limit->end(m_end_limit_by);
        }
        disconnect();
        m_links.reset();
    }

  protected:
    /// Takes the next job, if there is one: `make` makes it, and returns the core of its guard.
    /// Returns whether it has made one. When no handler is to get it, since it is on its way to
    /// another queue or there is no memory to decode the payload, sets `unhandled` to a task
    /// instead; a third time in a row that there is none to decode the envelope, the message goes
    /// to the dead list. Throws std::bad_alloc when memory is short for anything else, however
    /// often: the job stays fetched.
    bool next(const std::stop_token& token, Awaited* awaited, std::shared_ptr<Task>& unhandled,
              ConsumerCore::Decode make) {
        bool stands_in = false;
        const bool fetched = in_hand() > 0;
        const auto decode = [&](const std::string& payload) -> GuardCore& {
            if (!fetched) {
                // For all of a fetch: a clock costs as much as a lock.
                m_taken_at.store(Clock::now(), std::memory_order_relaxed);
            }
            m_scratch.as<JobScratch>().decoding = JobScratch::Part::nothing;
            if (is_addressed(payload)) {
                stands_in = true;
                return make_unhandled<PassingJob>(unhandled, payload, m_scratch);
            }
            return make(payload);
        };
        const auto stand_in = [&](const std::string& payload,
                                  const std::bad_alloc& shortage) -> GuardCore* {
            switch (m_scratch.as<JobScratch>().decoding) {
            case JobScratch::Part::nothing:
                throw; // the message did not cause it
            case JobScratch::Part::envelope:
                return nullptr;
            case JobScratch::Part::payload:
                break;
            }
            Scratch scratch;
            stands_in = true;
            return &make_unhandled<UndecodedJob>(unhandled, payload, scratch,
                                                 std::string("no memory to decode the payload: ") +
                                                     shortage.what());
        };
        try {
            return m_consumers.get()->poll(token, awaited, decode, stand_in) && !stands_in;
        } catch (const DecodeError&) { // the message is on the dead list, and on_event knows
            if (awaited != nullptr) {
                awaited->until = Clock::now();
            }
            return false;
        }
    }
    /// Sets `task` to an Unhandled for the payload, and returns the core of its guard.
    template <class Unhandled, class... Why>
    [[gnu::cold]] GuardCore& make_unhandled(std::shared_ptr<Task>& task, std::string_view payload,
                                            Scratch& scratch, Why... why) {
        auto job =
            std::make_shared<JobOf<Raw, Unhandled>>(*this, payload, scratch, std::move(why)...);
        GuardCore& guard = guard_of(job->job());
        task = std::move(job);
        return guard;
    }
    [[nodiscard]] static GuardCore& guard_of(JobRun& run) noexcept { return *run.m_core; }
    /// For the thread inside `take`.
    [[nodiscard]] Scratch& scratch() noexcept { return m_scratch; }

    /// Null when the queue is closed. Any thread.
    [[nodiscard]] std::shared_ptr<ConsumerCore> consumer() { return m_consumers.share(); }
    /// Returns how many jobs this number of free threads can begin at once.
    [[nodiscard]] virtual std::int64_t jobs_for(int threads) const noexcept {
        return std::min(threads, places());
    }
    void place_free() noexcept override { m_news->signal(); }
    [[nodiscard]] bool fetches_ahead() const noexcept {
        return options().prefetch > 1 || in_batches();
    }
    /// With a prefetch of 1, bounds the next fetch by the jobs that free threads can begin.
    void limit_fetch() {
        if (options().prefetch == 1) {
            m_consumers.get()->limit(bounded(std::min<std::int64_t>(jobs_for(m_free), m_most)));
        }
    }

  private:
    [[gnu::cold]] void connect() {
        ConsumerOptions chosen = consumer_options(shared().options, options());
        chosen.prefetch = most_ahead();
        chosen.on_event = [weak = weak_from_this()](const Event& event) {
            if (const auto queue = weak.lock()) {
                queue->tell(event);
            }
        };
        m_consumers.open(std::make_shared<ConsumerCore>(
            start_link(*m_links, keys()), keys(), std::move(chosen), m_news,
            TrialShare{shared().trials,
                       TrialLimits::of(std::max(shared().options.concurrency, most_places()),
                                       options().max_recoveries),
                       this->most_at_once()}));
    }
    [[nodiscard]] int most_ahead() const noexcept {
        return options().prefetch > 1 ? options().prefetch : bounded(this->most_at_once());
    }
    static int bounded(std::int64_t jobs) noexcept {
        return static_cast<int>(std::clamp<std::int64_t>(jobs, 1, largest_batch));
    }

    Scratch m_scratch; ///< for the thread inside `take`
    std::shared_ptr<NodeLinks> m_links;
    std::shared_ptr<const Wake> m_news;
    int m_free = 1;             ///< for the thread inside `take`
    int m_most = largest_batch; ///< too
    /// The last job's. Those of bursts (keyed.hpp) are made on other threads.
    std::atomic<TimePoint> m_taken_at{};
    LimitMaker m_make_limit;
    std::unique_ptr<QueueLimit> m_limit;
    TimePoint m_end_limit_by{};
    QueueConsumers m_consumers;
};

using FetchingQueues = std::vector<std::shared_ptr<FetchingQueue>>;

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/consumer/consumer_polling.ipp>
#endif
