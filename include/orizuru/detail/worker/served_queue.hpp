// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue that a worker serves, whatever its message type: gives out the tasks and answers their
// questions.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/turn.hpp>
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

class ServedQueue : public JobHost, public std::enable_shared_from_this<ServedQueue> {
  public:
    ServedQueue(std::shared_ptr<WorkerShared> shared, Keys keys, QueueOptions options)
        : m_shared(std::move(shared)), m_keys(std::move(keys)), m_options(std::move(options)) {}

    /// Connects and registers. Throws as Consumer's constructor does.
    virtual void open(const Endpoint& endpoint) = 0;
    /// Returns the next task; null when there was none in time, or when `token` requests a stop.
    /// For one thread at a time. Throws as Consumer::next does.
    virtual std::shared_ptr<Task> take(const std::stop_token& token,
                                       std::chrono::milliseconds timeout) = 0;
    /// How many jobs can run at once, in all threads.
    [[nodiscard]] virtual std::int64_t most_at_once() const noexcept {
        return m_shared->options.concurrency;
    }
    /// Tells how many threads are free for the jobs of the next fetch. For the thread that calls
    /// `take`, before it. Connects again when the queue was closed. Throws as open() does.
    virtual void limit(int free) = 0;
    /// How many jobs were fetched and not taken yet.
    [[nodiscard]] virtual std::size_t in_hand() const noexcept = 0;
    /// Requeues all jobs that were fetched and not taken. For the thread that calls `take`, before
    /// close().
    virtual void requeue_fetched() noexcept = 0;
    /// No call waits for Redis beyond `deadline` any more, until the queue is closed. Any thread.
    virtual void end_by(TimePoint deadline) noexcept = 0;
    /// Ends the calls of `recoveries` that wait, until the queue is opened again. Any thread.
    void cut_off() const noexcept {
        if (m_cutoff) {
            m_cutoff->signal();
        }
    }
    /// Closes the consumer. It leaves the registry once its last task is settled.
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

    /// Returns how often a worker has died while it held a message with this payload. Uses a
    /// connection of the queue's own, and waits for it at most connect_timeout. Throws as
    /// Recoveries does, also when it would have to wait after cut_off().
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
    /// Returns whether a message was buried since the last call.
    [[nodiscard]] bool take_dead_grew() noexcept { return m_dead_grew.exchange(false); }

  protected:
    /// Call it before the consumer registers. Throws std::system_error when the process can have no
    /// more descriptors.
    void use(const Endpoint& endpoint) {
        m_recoveries.reset();
        m_cutoff.emplace();
        m_endpoint = endpoint;
    }
    [[nodiscard]] const Endpoint& endpoint() const noexcept { return *m_endpoint; }

  private:
    /// Runs `action` when its turn has come. Throws ConnectionError when that takes too long.
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
    std::optional<Cutoff> m_cutoff; ///< for m_recoveries

    std::atomic<bool> m_dead_grew{true}; // earlier workers may have left too many entries

    Turn m_telling;
    std::optional<Progress> m_progress;
    Turn m_asking;
    std::optional<Recoveries> m_recoveries;
};

/// A guard that a handler has moved out of its context may outlive the worker: it shares its queue.
using ServedQueues = std::vector<std::shared_ptr<ServedQueue>>;

} // namespace orizuru::detail
