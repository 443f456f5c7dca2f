// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Moves the scheduled messages of a worker's queues when they are due. The script looks only at
// queues in which messages are scheduled. For the others, one connection waits until something is
// scheduled; one command a poll asks for all of them whether that went unnoticed. In a Cluster,
// where that would be a connection for each slot, it asks every second.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/jobs/due_messages.hpp>
#include <orizuru/detail/jobs/wake_lists.hpp>
#include <orizuru/detail/redis/any_exists.hpp>
#include <orizuru/detail/worker/upkeep/chores.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/scheduler_options.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// For one thread. The chores outlive this.
class QueueSchedulers {
  public:
    /// Adds a chore for each queue, and one for all; they use the connection. Asks Redis nothing
    /// yet.
    QueueSchedulers(const std::set<std::string>& queues, Endpoint endpoint,
                    const std::shared_ptr<Connection>& connection, const SchedulerOptions& options,
                    Chores& chores);
    QueueSchedulers(const QueueSchedulers&) = delete;
    QueueSchedulers& operator=(const QueueSchedulers&) = delete;
    ~QueueSchedulers() = default;

    /// Waits until then, a stop, or until a schedule has changed: its chore is due then. Connects
    /// first where it has to, for at most connect_timeout.
    void wait(TimePoint until, const std::stop_token& token, Chores::Tell tell);
    /// Closes the connection that waits: it would take wakes that other workers could act on.
    void leave() noexcept { m_wakes.reset(); }

  private:
    // Replaces SchedulerOptions::poll while it cannot wait for changes.
    static constexpr std::chrono::milliseconds blind_poll{1000};

    struct Queue {
        Queue(const Keys& names, std::shared_ptr<Connection> connection,
              std::chrono::milliseconds poll)
            : keys(names), due(names, std::move(connection), poll) {}

        Keys keys;
        DueMessages due;
        std::size_t chore = 0;
        bool empty = false; ///< no message was scheduled at the last look
    };

    TimePoint look(Queue& queue);
    TimePoint look_at_empty();
    void call_filled(std::span<const std::string> schedules, std::span<const std::size_t> chores);
    [[nodiscard]] std::chrono::milliseconds poll() const {
        return m_waiting.due <= Clock::now() ? m_poll : std::min(m_poll, blind_poll);
    }
    TimePoint await_wake(TimePoint until, const std::stop_token& token);

    Endpoint m_endpoint;
    std::shared_ptr<Connection> m_connection;
    std::chrono::milliseconds m_poll;
    Chores& m_chores;
    std::deque<Queue> m_queues; // which stay where they are
    std::size_t m_looking = 0;  ///< the chore for the empty queues
    bool m_together = true;     ///< one command may ask for all queues
    std::optional<WakeLists> m_wakes;
    Chore m_waiting{.what = "waiting for scheduled messages"}; ///< due = it may wait
    Random m_random;
};

inline QueueSchedulers::QueueSchedulers(const std::set<std::string>& queues, Endpoint endpoint,
                                        const std::shared_ptr<Connection>& connection,
                                        const SchedulerOptions& options, Chores& chores)
    : m_endpoint(std::move(endpoint)),
      m_connection(connection),
      m_poll(options.poll),
      m_chores(chores) {
    if (EndpointParts::of(m_endpoint).place) {
        m_waiting.due = TimePoint::max();
    }
    for (const std::string& name : queues) {
        Queue& queue = m_queues.emplace_back(Keys(name), connection, m_poll);
        queue.chore = m_chores.add(
            {.what = "scheduling", .queue = name, .step = [this, &queue] { return look(queue); }});
    }
    m_looking = m_chores.add({.what = "looking for scheduled messages",
                              .step = [this] { return look_at_empty(); },
                              .due = deadline_in(poll())});
}

inline TimePoint QueueSchedulers::look(Queue& queue) {
    queue.empty = false; // if the look fails, only its chore repeats it
    const TimePoint next = queue.due.look(poll());
    queue.empty = m_together && !queue.due.any_left();
    return queue.empty ? TimePoint::max() : next;
}

/// Half to one and a half of the poll apart, so that a thousand processes do not ask at once.
inline TimePoint QueueSchedulers::look_at_empty() {
    std::vector<std::string> schedules;
    std::vector<std::size_t> chores;
    for (const Queue& queue : m_queues) {
        if (queue.empty) {
            schedules.push_back(queue.keys.scheduled());
            chores.push_back(queue.chore);
        }
    }
    call_filled(schedules, chores);
    const std::chrono::milliseconds average = poll();
    return m_together ? deadline_in(average / 2 +
                                    std::chrono::milliseconds(m_random.up_to(average.count())))
                      : TimePoint::max();
}

/// Has those looked at in which something appeared. Finds one among n by about 2 log2(n) questions,
/// in place of n looks by script.
inline void QueueSchedulers::call_filled(std::span<const std::string> schedules,
                                         std::span<const std::size_t> chores) {
    if (schedules.empty()) {
        return;
    }
    const std::optional<bool> any = any_exists(*m_connection, schedules);
    m_together = m_together && any.has_value();
    if (!m_together || (*any && schedules.size() == 1)) {
        std::ranges::for_each(chores, [this](std::size_t chore) { m_chores.call(chore); });
    } else if (*any) {
        const std::size_t half = schedules.size() / 2;
        call_filled(schedules.first(half), chores.first(half));
        call_filled(schedules.subspan(half), chores.subspan(half));
    }
}

inline void QueueSchedulers::wait(TimePoint until, const std::stop_token& token,
                                  Chores::Tell tell) {
    if (m_waiting.due > Clock::now()) {
        sleep_until(std::min(until, m_waiting.due), token);
        return;
    }
    m_chores.attempt(
        m_waiting, [&] { return await_wake(until, token); }, tell);
    if (m_waiting.due > Clock::now()) {
        // They meant to be woken.
        if (m_together) {
            m_chores.call(m_looking);
        }
        for (const Queue& queue : m_queues) {
            if (!queue.empty) {
                m_chores.call(queue.chore);
            }
        }
    }
}

/// Returns when it can be called again.
inline TimePoint QueueSchedulers::await_wake(TimePoint until, const std::stop_token& token) {
    try {
        if (!m_wakes) {
            std::vector<Keys> keys;
            for (const Queue& queue : m_queues) {
                keys.push_back(queue.keys);
            }
            m_wakes.emplace(keys, m_endpoint);
        }
        if (const auto position = m_wakes->wait(until, token)) {
            m_chores.call(m_queues[*position].chore);
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
