// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Does a worker's regular work for its queues: moves scheduled messages that are due, pushes those
// that recur, collects the messages of dead consumers, looks for pauses and for jobs to cancel,
// trims dead lists, reports how the jobs have ended.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/collector/passes.hpp>
#include <orizuru/detail/redis/place/node_lines.hpp>
#include <orizuru/detail/redis/place/queue_connections.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/server_clock.hpp>
#include <orizuru/detail/worker/dispatcher.hpp>
#include <orizuru/detail/worker/reports/queue_report.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/detail/worker/upkeep/chores.hpp>
#include <orizuru/detail/worker/upkeep/dead_list_trimming.hpp>
#include <orizuru/detail/worker/upkeep/loop_watch.hpp>
#include <orizuru/detail/worker/upkeep/queue_requests.hpp>
#include <orizuru/detail/worker/upkeep/queue_schedulers.hpp>
#include <orizuru/detail/worker/worker_shared.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/event.hpp>
#include <orizuru/garbage_collector_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// For one thread. The queues, the dispatcher and `running` outlive this.
class QueueUpkeep {
  public:
    /// Connects, and pauses the dispatcher for each queue that is paused. Blocks for up to
    /// connect_timeout, and for as long again while a queue moves to another node. Throws as
    /// Connection does.
    QueueUpkeep(Endpoint endpoint, ServedQueues queues, WorkerShared& shared,
                Dispatcher& dispatcher, const RunningTasks& running, NodeLines& lines);

    /// Does what is due, until a stop is requested.
    void run(const std::stop_token& token);
    /// Reports how the last jobs have ended. Call it at the end.
    void leave() noexcept;

  private:
    static constexpr std::string_view reporting = "reporting how the jobs have ended";

    void schedule();
    void collect(ServedQueue& queue);
    void trim(ServedQueue& queue);
    void watch_loops(ServedQueue& queue);
    void report(ServedQueue& queue, std::chrono::milliseconds first);
    void tell_refused(const ServedQueue& queue, const ReplyError& error) noexcept;
    void list_queues();
    void read_clock();
    /// In a Cluster, whether the queue is in the slot that the connections lead to.
    [[nodiscard]] bool is_here(const std::string& queue) const {
        const auto& place = EndpointParts::of(m_endpoint).place;
        return !queue.empty() && (!place || group_of(m_endpoint, Keys(queue)) ==
                                                group_of(m_endpoint, Keys(place->key())));
    }

    Endpoint m_endpoint;
    ServedQueues m_queues;
    WorkerShared& m_shared;
    const RunningTasks& m_running;
    NodeLines& m_lines;
    std::optional<NodeLines::Loan> m_line; ///< while a chore is done
    std::shared_ptr<Connection> m_connection;
    ServerClock m_clock;
    QueueRequests m_requests;

    Chores m_chores;
    std::deque<QueueReport> m_reports;
    bool m_reports_refused = false;
    std::optional<QueueSchedulers> m_schedulers;
};

inline QueueUpkeep::QueueUpkeep(Endpoint endpoint, ServedQueues queues, WorkerShared& shared,
                                Dispatcher& dispatcher, const RunningTasks& running,
                                NodeLines& lines)
    : m_endpoint(std::move(endpoint)),
      m_queues(std::move(queues)),
      m_shared(shared),
      m_running(running),
      m_lines(lines),
      m_connection(std::make_shared<Connection>(m_endpoint)),
      m_requests(m_queues, *m_connection, dispatcher, m_running) {
    const NodeLines::Loan line(m_lines, *m_connection);
    m_requests.check_first(m_endpoint.connect_timeout());
    read_clock();
    m_chores.add({.what = "watching the queues", .step = [this] {
                      m_requests.check_now();
                      read_clock();
                      return deadline_in(m_shared.options.recheck);
                  }});
    schedule(); // first of all that is due at once: a collector's first pass may take long
    for (const AddedChore& added : m_shared.added_chores) {
        if (!is_here(added.queue)) {
            continue;
        }
        m_chores.add({.what = added.what, .queue = added.queue, .step = added.begin(m_connection)});
    }
    // Workers that start together report at different times.
    const std::chrono::milliseconds first(Random().up_to(QueueReport::interval.count()));
    for (const auto& queue : m_queues) {
        collect(*queue);
        trim(*queue);
        report(*queue, first);
        watch_loops(*queue);
    }
    m_chores.add({.what = "listing the queues", .step = [this] {
                      list_queues();
                      return deadline_in(std::chrono::minutes(10));
                  }});
}

inline void QueueUpkeep::run(const std::stop_token& token) {
    const auto tell = [&](const Chore& chore, std::string_view why,
                          std::chrono::milliseconds pause) {
        if (!token.stop_requested()) {
            m_shared.events.tell_failed(chore.what, chore.queue, why, pause);
        }
    };
    // A waiting connection takes wakes that other workers could act on.
    const auto leave = at_exit([this] {
        if (m_schedulers) {
            m_schedulers->leave();
        }
    });
    while (!token.stop_requested()) {
        const TimePoint due = m_chores.next_due();
        if (m_schedulers) {
            m_schedulers->wait(due, token, tell); // also when it is past: a queue may be woken
        } else {
            sleep_until(due, token);
        }
        m_line.emplace(m_lines, *m_connection);
        m_chores.do_next(tell);
        m_line.reset();
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

inline void QueueUpkeep::watch_loops(ServedQueue& queue) {
    if (queue.has_loops()) {
        m_chores.add({.what = "watching its loops",
                      .queue = queue.queue(),
                      .step = [watch = LoopWatch(queue)]() mutable {
                          watch.look();
                          return deadline_in(LoopWatch::interval);
                      }});
    }
}

inline void QueueUpkeep::collect(ServedQueue& queue) {
    const auto& interval = m_shared.options.collect_interval;
    if (!interval) {
        return;
    }
    const auto passes = std::make_shared<Passes>(
        queue.keys(), *m_connection,
        GarbageCollectorOptions{.max_recoveries = queue.options().max_recoveries,
                                .dead_limit = queue.options().dead.most,
                                .on_event =
                                    [&queue](const Event& event) {
                                        if (event.kind == EventKind::suspected) {
                                            queue.mark_suspects();
                                        }
                                        queue.tell(event);
                                    },
                                .blamed = queue.most_at_once()});
    m_chores.add({.what = "collecting", .queue = queue.queue(), .step = [passes, &interval] {
                      return passes->step(*interval);
                  }});
}

inline void QueueUpkeep::schedule() {
    const auto& options = m_shared.options.scheduler;
    if (!options) {
        return;
    }
    std::set<std::string> queues;
    for (const auto& queue : m_queues) {
        queues.insert(queue->queue());
        queue->add_retry_queues(queues);
    }
    std::erase_if(queues, [this](const std::string& queue) { return !is_here(queue); });
    if (!queues.empty()) {
        m_schedulers.emplace(queues, m_endpoint, m_connection, *options, m_chores);
    }
}

/// A user without the right to it goes without, and hears of that once.
inline void QueueUpkeep::report(ServedQueue& queue, std::chrono::milliseconds first) {
    QueueReport& report = m_reports.emplace_back(queue, m_running, m_connection);
    m_chores.add({.what = reporting,
                  .queue = queue.queue(),
                  .step =
                      [this, &queue, &report] {
                          try {
                              report.step();
                          } catch (const ReplyError& error) {
                              if (is_for_now(error)) {
                                  throw;
                              }
                              tell_refused(queue, error);
                          }
                          return deadline_in(QueueReport::interval);
                      },
                  .due = deadline_in(first)});
}

inline void QueueUpkeep::tell_refused(const ServedQueue& queue, const ReplyError& error) noexcept {
    if (!std::exchange(m_reports_refused, true)) {
        m_shared.events.tell_failed(reporting, queue.queue(), error.what(), QueueReport::interval);
    }
}

inline void QueueUpkeep::leave() noexcept {
    for (std::size_t i = 0; i < m_reports.size(); ++i) {
        try {
            const NodeLines::Loan line(m_lines, *m_connection);
            m_reports[i].leave();
        } catch (const ReplyError& error) {
            tell_refused(*m_queues[i], error);
        } catch (const std::exception&) {
            return; // Redis is away
        }
    }
}

/// For an Inspector. A user without the right to it goes without.
inline void QueueUpkeep::list_queues() {
    const std::string key = Keys::queues();
    std::shared_ptr<Connection> connection = m_connection;
    if (EndpointParts::of(m_endpoint).place) { // in a Cluster it is in a slot of its own
        m_line.reset();                        // the node there may hang
        connection = std::make_shared<Connection>(Route::to_key(m_endpoint, key));
    }
    try {
        for (const auto& queue : m_queues) {
            connection->command(key, "SADD", key, queue->queue());
        }
    } catch (const ReplyError&) { // NOLINT(bugprone-empty-catch)
        // It is no more than a hint.
    }
}

/// Once in each connection: after a failover Redis is another host.
inline void QueueUpkeep::read_clock() {
    m_clock.read(*m_connection, "the clock");
    for (const auto& queue : m_queues) {
        queue->set_time(m_clock.time());
    }
}

} // namespace orizuru::detail
