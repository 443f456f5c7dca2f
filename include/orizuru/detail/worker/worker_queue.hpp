// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One queue of a worker, whatever its messages are: where tasks come from, and what tasks ask for.

#include <orizuru/detail/base/turn.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/cutoff.hpp>
#include <orizuru/detail/worker/recoveries.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/jobs/progress.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class WorkerQueue : public JobHost, public std::enable_shared_from_this<WorkerQueue> {
  public:
    WorkerQueue(std::shared_ptr<WorkerShared> shared, Keys keys, QueueOptions options)
        : m_shared(std::move(shared)), m_keys(std::move(keys)), m_options(std::move(options)) {}

    /// Connects and registers. Throws as Consumer's constructor does.
    virtual void open(const Endpoint& endpoint) = 0;
    /// The next job; none when there was none in time or `token` says stop. For one thread at a
    /// time. Throws as Consumer::next does.
    virtual std::shared_ptr<Task> take(const std::stop_token& token,
                                       std::chrono::milliseconds timeout) = 0;
    /// How many jobs can be at work at once, in all threads.
    [[nodiscard]] virtual std::int64_t most_at_once() const noexcept {
        return m_shared->options.concurrency;
    }
    /// How many threads are free for what the next fetch takes. For the thread in `take`, before
    /// it; connects again when the queue was closed. Throws as open does.
    virtual void limit(int free) = 0;
    /// How many jobs `take` has without asking Redis.
    [[nodiscard]] virtual std::size_t in_hand() const noexcept = 0;
    /// Gives back what `take` has not returned. For the thread in `take`, before close().
    virtual void give_back_fetched() noexcept = 0;
    /// Bounds what still waits for Redis until the queue is closed. Any thread.
    virtual void end_by(TimePoint deadline) noexcept = 0;
    /// Ends the waiting for `recoveries`, until the queue is opened again. Any thread.
    void cut_off() const noexcept {
        if (m_cutoff) {
            m_cutoff->signal();
        }
    }
    /// Leaves the registry, with the last task that is not settled.
    virtual void close() noexcept = 0;

    [[nodiscard]] const Keys& keys() const noexcept { return m_keys; }
    [[nodiscard]] const QueueOptions& options() const noexcept { return m_options; }

    [[nodiscard]] const std::string& queue() const noexcept override { return m_keys.source(); }
    [[nodiscard]] std::stop_token stop_token() const noexcept override {
        return m_shared->stop.get_token();
    }
    bool progress(std::string_view job_id, double fraction, std::string_view note) override {
        try {
            in_turn(m_telling, [&] {
                if (!m_progress) {
                    m_progress.emplace(*m_endpoint, queue());
                }
                m_progress->set(job_id, fraction, note);
            });
            return true;
        } catch (const Error& error) {
            tell(WorkerEvent{.kind = WorkerEventKind::progress_failed,
                             .job_id = job_id,
                             .detail = error.what()});
            return false;
        }
    }

    /// How often workers have died with these bytes in their hands; on a connection of the queue's
    /// own, for which it waits at most connect_timeout. Throws as Recoveries does, also where it
    /// would wait when the queue is cut off.
    [[nodiscard]] int recoveries(std::string_view payload) {
        int count = 0;
        in_turn(m_asking, [&] {
            if (!m_recoveries) {
                m_recoveries.emplace(m_cutoff->guard(*m_endpoint), m_keys);
            }
            count = m_recoveries->of(payload);
        });
        return count;
    }

    [[nodiscard]] WorkerShared& shared() const noexcept { return *m_shared; }
    void tell(WorkerEvent event) const noexcept {
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
        ++m_shared->counts.died;
        m_dead_grew = true;
        tell(WorkerEvent{
            .kind = WorkerEventKind::died, .job_id = job_id, .detail = reason, .payload = payload});
    }
    /// Whether something was buried since this was last asked.
    [[nodiscard]] bool has_dead_grown() noexcept { return m_dead_grew.exchange(false); }

  protected:
    /// Before it registers. Throws std::system_error for want of descriptors.
    void use(const Endpoint& endpoint) {
        m_recoveries.reset();
        m_cutoff.emplace();
        m_endpoint = endpoint;
    }
    [[nodiscard]] const Endpoint& endpoint() const noexcept { return *m_endpoint; }

  private:
    /// Throws ConnectionError when that takes too long.
    template <class Action>
    void in_turn(Turn& turn, Action action) {
        if (!turn.take(m_endpoint->connect_timeout(), action)) {
            throw ConnectionError(m_endpoint->address() + ": '" + queue() +
                                  "': what other jobs ask for takes too long");
        }
    }

    std::shared_ptr<WorkerShared> m_shared;
    Keys m_keys;
    QueueOptions m_options;
    std::optional<Endpoint> m_endpoint;
    std::optional<Cutoff> m_cutoff; ///< of m_recoveries

    std::atomic<bool> m_dead_grew{true}; // whoever was here before may have left too much

    Turn m_telling;
    std::optional<Progress> m_progress;
    Turn m_asking;
    std::optional<Recoveries> m_recoveries;
};

/// Shared with what a handler has moved out of its context, which may outlive the worker.
using WorkerQueues = std::vector<std::shared_ptr<WorkerQueue>>;

} // namespace orizuru::detail
