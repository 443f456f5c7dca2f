// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue that a worker serves, whatever its message type: what its jobs, their settling, reports
// and upkeep ask of it.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/redis/scripts/recovery_counts.hpp>
#include <orizuru/detail/redis/server_clock.hpp>
#include <orizuru/detail/worker/reports/queue_counts.hpp>
#include <orizuru/detail/worker/stops/cancellations.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/event.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

struct ForwardedJob;
class Heartbeat;
class InFlight;
class NodeLinks;

/// Returns the link on which a consumer of the queue starts. Connects it if there is none, for at
/// most connect_timeout, and throws as Consumer's constructor does then.
[[nodiscard]] std::shared_ptr<Heartbeat> start_link(NodeLinks& links, const Keys& keys);
/// All consumers share one link.
[[nodiscard]] bool share_a_link(const NodeLinks& links) noexcept;

class ServedQueue : public JobHost, public std::enable_shared_from_this<ServedQueue> {
  public:
    /// One of the places that QueueOptions::concurrency gives to tasks, while it exists.
    class Place {
      public:
        explicit Place(ServedQueue& queue) noexcept : m_queue(queue) { ++queue.m_running; }
        /// Once: its payload takes so much memory.
        void weigh(std::size_t bytes) noexcept {
            m_bytes = static_cast<std::int64_t>(bytes);
            m_queue.m_bytes += m_bytes;
        }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;
        ~Place() {
            --m_queue.m_running;
            m_queue.m_bytes -= m_bytes;
            if (m_queue.bounded()) {
                m_queue.place_free();
            }
        }

      private:
        ServedQueue& m_queue;
        std::int64_t m_bytes = 0;
    };

    ServedQueue(std::shared_ptr<WorkerShared> shared, Keys keys, QueueOptions options)
        : m_shared(std::move(shared)), m_keys(std::move(keys)), m_options(std::move(options)) {}

    /// Returns how many jobs can run at once, in all threads.
    [[nodiscard]] virtual std::int64_t most_at_once() const noexcept { return most_places(); }
    /// True while no other task of this queue may begin.
    [[nodiscard]] bool full() const noexcept { return bounded() && places() == 0; }
    /// Returns how long a handler of this kind may run.
    [[nodiscard]] std::optional<std::chrono::milliseconds>
    time_limit(const KindOptions& kind) const noexcept {
        return kind.time_limit ? kind.time_limit : m_options.time_limit;
    }
    /// Where its failed jobs are tried again, if that is chosen; an empty name stands for here.
    virtual void add_retry_queues(std::set<std::string>& queues) const {
        queues.insert(m_options.retry.retry_queue);
    }
    [[nodiscard]] virtual bool has_time_limit() const noexcept {
        return m_options.time_limit.has_value();
    }
    /// True when loops of the user's run its handlers.
    [[nodiscard]] virtual bool has_loops() const noexcept { return false; }
    /// Its handler gets several jobs at once.
    [[nodiscard]] virtual bool in_batches() const noexcept { return false; }
    /// Returns for how long the slowest of them has run nothing that this has posted to it. For one
    /// thread, again and again.
    [[nodiscard]] virtual Clock::duration loop_delay() { return {}; }
    /// Empty for a kind that has no handler of its own here. Lives as long as the queue.
    [[nodiscard]] virtual const KindOptions& options_of(std::string_view /*kind*/) const noexcept {
        return m_of_no_kind;
    }
    /// A collector of this process has put messages apart. Any thread.
    virtual void mark_suspects() noexcept = 0;
    /// The jobs that handlers have begun and end later; null where no handler does.
    [[nodiscard]] InFlight* in_flight() const noexcept { return m_in_flight.get(); }

    [[nodiscard]] const Keys& keys() const noexcept { return m_keys; }
    [[nodiscard]] const QueueOptions& options() const noexcept { return m_options; }

    [[nodiscard]] const std::string& queue() const noexcept override { return m_keys.source(); }
    [[nodiscard]] std::stop_token stop_token() const noexcept override {
        return m_shared->stop.get_token();
    }
    [[nodiscard]] JobTime now() const noexcept override {
        return std::chrono::floor<std::chrono::milliseconds>(
            m_time.load(std::memory_order_relaxed).now());
    }
    /// Its jobs have keys (keyed.hpp).
    [[nodiscard]] bool keyed() const noexcept { return m_burst > 0; }
    /// KeyedOptions::burst.
    [[nodiscard]] int burst() const noexcept { return m_burst; }
    void set_time(ServerTime time) noexcept {
        m_time.store(time, std::memory_order_relaxed);
        m_counts.read_clocks(now());
    }
    // The macro here keeps files that only include this from emitting the class.
    ORIZURU_INLINE bool progress(std::string_view job_id, double fraction,
                                 std::string_view note) override;
    ORIZURU_INLINE void progress(std::string_view job_id, double fraction, std::string_view note,
                                 std::function<void(bool)> told) override;
    ORIZURU_INLINE bool extend_unique(const JobHead& job, std::chrono::milliseconds ttl) override;
    /// Pushes it to its queue. Blocks and throws as JobQueries does.
    void forward(const ForwardedJob& job);
    /// See JobQueries::recoveries.
    [[nodiscard]] JobRecoveries recoveries(std::string_view job_id);
    [[nodiscard]] std::vector<JobRecoveries> recoveries(std::span<const std::string_view> job_ids);

    [[nodiscard]] WorkerShared& shared() const noexcept { return *m_shared; }
    [[nodiscard]] QueueCounts& counts() noexcept { return m_counts; }
    [[nodiscard]] Cancellations& cancellations() noexcept { return m_cancellations; }
    /// Returns how many tasks have a place.
    [[nodiscard]] int running() const noexcept { return m_running; }
    /// Sends the acks that were accepted and are not sent yet, as Consumer::flush does, those of
    /// consumers that a pause has closed included; returns how many were late. Any thread.
    virtual std::size_t flush_acks() = 0;
    /// The id of the consumer; empty while it is closed. Any thread.
    [[nodiscard]] virtual std::string consumer_id() = 0;
    /// Adds the queue's name to it. By reference: a copy would cost each job more than its counts.
    void tell(WorkerEvent&& event) const noexcept {
        event.queue = queue();
        m_shared->events.tell(event);
    }
    void tell(const Event& event) noexcept {
        if (event.kind == EventKind::decode_failed || event.kind == EventKind::buried) {
            tell_died({}, event.detail, event.payload);
        } else {
            tell(WorkerEvent{.kind = WorkerEventKind::consumer, .event = &event});
        }
    }
    void tell_died(std::string_view job_id, std::string_view reason,
                   std::string_view payload) noexcept {
        m_counts.add(Outcome::died);
        m_dead_grew = true;
        tell(WorkerEvent{
            .kind = WorkerEventKind::died, .job_id = job_id, .detail = reason, .payload = payload});
    }
    /// Returns whether a message was buried since the last call.
    [[nodiscard]] bool take_dead_grew() noexcept { return m_dead_grew.exchange(false); }

  protected:
    /// Returns how many tasks may begin now. Where payloads are weighed, the next ones are likely
    /// as large as those that run.
    [[nodiscard]] int places() const noexcept {
        const std::int64_t running = m_running;
        const std::int64_t bytes = m_bytes;
        std::int64_t most = most_places() - running;
        if (bytes > 0 && running > 0) {
            const std::int64_t left =
                std::max<std::int64_t>(m_options.max_bytes_in_flight - bytes, 0);
            const std::int64_t average = std::max<std::int64_t>(bytes / running, 1);
            most = std::min(most, left / average + (left % average > 0 ? 1 : 0));
        }
        return static_cast<int>(std::max<std::int64_t>(most, 0));
    }
    /// Called on any thread.
    virtual void place_free() noexcept = 0;
    /// Returns how many tasks have a place at most.
    [[nodiscard]] int most_places() const noexcept {
        const int threads = m_shared->options.concurrency;
        const int most = m_options.concurrency.value_or(threads);
        return m_in_flight ? most : std::min(most, threads);
    }
    // Before open().

    void set_options(QueueOptions options) { m_options = std::move(options); }
    void set_keyed(int burst) noexcept { m_burst = burst; }
    void set_in_flight(std::shared_ptr<InFlight> jobs) noexcept { m_in_flight = std::move(jobs); }

  private:
    /// Its places are fewer than the threads, or have nothing to do with them.
    [[nodiscard]] bool bounded() const noexcept { return m_options.concurrency || m_in_flight; }

    std::shared_ptr<WorkerShared> m_shared;
    Keys m_keys;
    QueueOptions m_options;
    const KindOptions m_of_no_kind;
    std::shared_ptr<InFlight> m_in_flight;
    int m_burst = 0; ///< if its jobs have keys
    QueueCounts m_counts;
    Cancellations m_cancellations;
    std::atomic<ServerTime> m_time{};
    std::atomic<int> m_running{0};        ///< tasks that have a place
    std::atomic<std::int64_t> m_bytes{0}; ///< their payloads', as far as they are weighed
    std::atomic<bool> m_dead_grew{true};  // earlier workers may have left too many entries
};

/// A guard that a handler has moved out of its context may outlive the worker: it shares its queue.
using ServedQueues = std::vector<std::shared_ptr<ServedQueue>>;

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/worker/served_queue.ipp>
#endif
