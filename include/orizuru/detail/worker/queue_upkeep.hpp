// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a worker does for its queues at intervals: moves scheduled messages that are due, collects
// the messages of dead consumers, looks for pauses, trims dead lists.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/sleep.hpp>
#include <orizuru/detail/collector/passes.hpp>
#include <orizuru/detail/jobs/due_messages.hpp>
#include <orizuru/detail/jobs/wake_lists.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/detail/worker/chores.hpp>
#include <orizuru/detail/worker/dead_list_trimming.hpp>
#include <orizuru/detail/worker/dispatcher.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/garbage_collector_options.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// For one thread. The queues and the dispatcher outlive this.
class QueueUpkeep {
  public:
    /// Connects, and pauses the dispatcher for each queue that is paused. Throws as Connection
    /// does.
    QueueUpkeep(Endpoint endpoint, const ServedQueues& queues, WorkerShared& shared,
                Dispatcher& dispatcher);

    /// Does what is due, until a stop is requested.
    void run(const std::stop_token& token);

  private:
    // How often, in place of SchedulerOptions::poll, while it cannot wait for changes.
    static constexpr std::chrono::milliseconds blind_poll{1000};

    void schedule();
    void collect(ServedQueue& queue);
    void trim(ServedQueue& queue);
    void check_pauses();
    [[nodiscard]] bool any_paused(const ServedQueues& queues);
    TimePoint look(DueMessages& due);
    void wait(TimePoint until, const std::stop_token& token, Chores::Tell tell);
    TimePoint await_wake(TimePoint until, const std::stop_token& token);

    Endpoint m_endpoint;
    const ServedQueues& m_queues;
    WorkerShared& m_shared;
    Dispatcher& m_dispatcher;
    std::shared_ptr<Connection> m_connection;
    std::set<std::string> m_paused;
    bool m_together = true; ///< one command may ask for the pauses of all queues

    Chores m_chores;
    std::vector<Keys> m_scheduled;         ///< of the queues that have a scheduler
    std::vector<std::size_t> m_schedulers; ///< their chores
    std::optional<WakeLists> m_wakes;
    Chore m_waiting{.what = "waiting for scheduled messages"}; ///< due = it may wait
};

inline QueueUpkeep::QueueUpkeep(Endpoint endpoint, const ServedQueues& queues, WorkerShared& shared,
                                Dispatcher& dispatcher)
    : m_endpoint(std::move(endpoint)),
      m_queues(queues),
      m_shared(shared),
      m_dispatcher(dispatcher),
      m_connection(std::make_shared<Connection>(m_endpoint)) {
    check_pauses();
    m_chores.add({.what = "watching the queues", .step = [this] {
                      check_pauses();
                      return deadline_in(m_shared.options.recheck);
                  }});
    schedule(); // first of all that is due at once: a collector's first pass may take long
    for (const auto& queue : m_queues) {
        collect(*queue);
        trim(*queue);
    }
}

inline void QueueUpkeep::run(const std::stop_token& token) {
    const auto tell = [&](const Chore& chore, std::string_view why,
                          std::chrono::milliseconds pause) {
        if (!token.stop_requested()) {
            m_shared.events.tell_failed(chore.what, chore.queue, why, pause);
        }
    };
    // A waiting connection takes wakes that other workers could act on.
    const auto leave = at_exit([this] { m_wakes.reset(); });
    while (!token.stop_requested()) {
        wait(m_chores.next_due(), token, tell); // also when it is past: another queue may be woken
        m_chores.do_next(tell);
    }
}

inline void QueueUpkeep::trim(ServedQueue& queue) {
    const auto trimming = std::make_shared<DeadListTrimming>(queue, m_connection);
    m_chores.add(
        {.what = "trimming the dead list", .queue = queue.queue(), .step = [this, trimming] {
             trimming->trim();
             return deadline_in(m_shared.options.recheck);
         }});
}

inline void QueueUpkeep::collect(ServedQueue& queue) {
    const auto& interval = m_shared.options.collect_interval;
    if (!interval) {
        return;
    }
    const auto passes = std::make_shared<Passes>(
        queue.keys(), m_connection,
        GarbageCollectorOptions{.max_recoveries = queue.options().max_recoveries,
                                .dead_limit = queue.options().dead.most,
                                .on_event = [&queue](const Event& event) { queue.tell(event); },
                                .blamed = queue.most_at_once()});
    m_chores.add({.what = "collecting", .queue = queue.queue(), .step = [passes, &interval] {
                      return passes->step(*interval);
                  }});
}

inline void QueueUpkeep::schedule() {
    const auto& options = m_shared.options.scheduler;
    if (!options) {
        m_waiting.due = TimePoint::max();
        return;
    }
    std::set<std::string> queues;
    for (const auto& queue : m_queues) {
        queues.insert({queue->queue(), queue->options().retry.retry_queue});
    }
    queues.erase("");
    for (const std::string& queue : queues) {
        const Keys& keys = m_scheduled.emplace_back(queue);
        const auto due = std::make_shared<DueMessages>(keys, m_connection, options->poll);
        m_schedulers.push_back(m_chores.add(
            {.what = "scheduling", .queue = queue, .step = [this, due] { return look(*due); }}));
    }
}

inline TimePoint QueueUpkeep::look(DueMessages& due) {
    const std::chrono::milliseconds poll = m_shared.options.scheduler->poll;
    return due.look(m_waiting.due <= Clock::now() ? poll : std::min(poll, blind_poll));
}

inline void QueueUpkeep::check_pauses() {
    const bool any = any_paused(m_queues);
    for (const auto& queue : m_queues) {
        const bool paused = any && (m_queues.size() == 1 || any_paused({queue}));
        if (paused && m_paused.insert(queue->queue()).second) {
            m_dispatcher.pause(queue->queue());
        } else if (!paused && m_paused.erase(queue->queue()) > 0) {
            m_dispatcher.resume(queue->queue());
        }
    }
}

/// One command for all queues. Where Redis refuses it (a Cluster with queues in several slots, a
/// user without the right to one key), true from then on: each queue is to be asked for.
inline bool QueueUpkeep::any_paused(const ServedQueues& queues) {
    if (!m_together && queues.size() > 1) {
        return true;
    }
    try {
        const Reply reply = m_connection->roundtrip("", "EXISTS", [&](std::string& out) {
            begin_command(out, queues.size() + 1);
            append_argument(out, "EXISTS");
            for (const auto& queue : queues) {
                append_argument(out, queue->keys().paused());
            }
        });
        m_connection->require(reply, Reply::Type::integer, "EXISTS");
        return reply.integer != 0;
    } catch (const ReplyError& error) {
        if (queues.size() == 1 || is_for_now(error)) {
            throw;
        }
        m_together = false;
        return true;
    }
}

/// Until then nothing is due, unless somebody schedules something earlier. Connects first where it
/// has to, for at most connect_timeout.
inline void QueueUpkeep::wait(TimePoint until, const std::stop_token& token, Chores::Tell tell) {
    if (m_waiting.due > Clock::now()) {
        sleep_until(std::min(until, m_waiting.due), token);
        return;
    }
    m_chores.attempt(
        m_waiting, [&] { return await_wake(until, token); }, tell);
    if (m_waiting.due > Clock::now()) {
        for (const std::size_t scheduler : m_schedulers) {
            m_chores.call(scheduler); // it meant to be woken
        }
    }
}

/// Returns when it can be called again.
inline TimePoint QueueUpkeep::await_wake(TimePoint until, const std::stop_token& token) {
    try {
        if (!m_wakes) {
            m_wakes.emplace(m_scheduled, m_endpoint);
        }
        if (const auto position = m_wakes->wait(until, token)) {
            m_chores.call(m_schedulers[*position]);
        }
        return {};
    } catch (const ReplyError& error) {
        if (error.code() != "CROSSSLOT") {
            throw;
        }
        m_wakes.reset();
        return TimePoint::max();
    }
}

} // namespace orizuru::detail
