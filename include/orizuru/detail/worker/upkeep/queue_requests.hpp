// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Carries out requests to a worker's queues: to pause, and to cancel jobs. One command asks for all
// queues at once whether there is a request; it is read only then.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/redis/any_exists.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/worker/dispatcher.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/detail/worker/stops/cancel_scripts.hpp>
#include <orizuru/detail/worker/stops/cancellations.hpp>
#include <orizuru/detail/worker/task.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/worker_event.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// For one thread. All that it is given outlives this.
class QueueRequests {
  public:
    QueueRequests(const ServedQueues& queues, Connection& connection, Dispatcher& dispatcher,
                  const RunningTasks& running)
        : m_queues(queues),
          m_connection(connection),
          m_dispatcher(dispatcher),
          m_running(running) {}

    /// Looks for pauses, then for jobs that are to be cancelled. Throws as Connection::command.
    void check_now();
    /// Does so at a start: while a queue moves to another node, the start waits for so long and is
    /// not refused; so does its consumer's.
    void check_first(std::chrono::milliseconds patience);

  private:
    void check_pause(const std::string& queue, bool paused);
    void cancel(ServedQueue& queue);
    void forget_ended(ServedQueue& queue);
    void leave_cancelling(ServedQueue& queue, const ReplyError& error);
    [[nodiscard]] bool may_cancel(const ServedQueue& queue) const {
        return !m_uncancelled.contains(queue.queue());
    }
    [[nodiscard]] bool any_in(const ServedQueues& queues);

    const ServedQueues& m_queues;
    Connection& m_connection;
    Dispatcher& m_dispatcher;
    const RunningTasks& m_running;
    std::set<std::string> m_paused;
    std::set<std::string> m_uncancelled; ///< the user may not read what is to be cancelled there
    bool m_together = true;              ///< one command may ask for the requests of all queues
};

inline void QueueRequests::check_first(std::chrono::milliseconds patience) {
    const TimePoint deadline = deadline_in(patience);
    JitteredPauses pauses;
    while (true) {
        try {
            return check_now();
        } catch (const ReplyError& error) {
            if (error.code() != "TRYAGAIN" || Clock::now() >= deadline) {
                throw;
            }
        }
        std::this_thread::sleep_until(std::min(deadline_in(pauses.next()), deadline));
    }
}

inline void QueueRequests::check_now() {
    const bool any = any_in(m_queues);
    std::vector<ServedQueue*> asked;
    for (const auto& queue : m_queues) {
        const bool some = any && (m_queues.size() == 1 || any_in({queue}));
        const std::string pause = queue->keys().paused();
        check_pause(queue->queue(), some && any_exists(m_connection, {&pause, 1}).value_or(true));
        if (some && may_cancel(*queue)) {
            asked.push_back(&*queue);
        } else {
            queue->cancellations().replace({});
            queue->cancellations().forget(queue->cancellations().ended());
        }
    }
    for (ServedQueue* const queue : asked) {
        try {
            cancel(*queue);
        } catch (const ReplyError& error) {
            if (is_for_now(error)) {
                throw;
            }
            leave_cancelling(*queue, error);
        }
    }
}

inline void QueueRequests::check_pause(const std::string& queue, bool paused) {
    if (paused && m_paused.insert(queue).second) {
        m_dispatcher.pause(queue);
    } else if (!paused && m_paused.erase(queue) > 0) {
        m_dispatcher.resume(queue);
    }
}

inline void QueueRequests::cancel(ServedQueue& queue) {
    forget_ended(queue);
    const std::string key = queue.keys().cancelled();
    Reply reply = m_connection.command(key, "HGETALL", key);
    if (!is_strings(reply) || reply.elements.size() % 2 != 0) {
        refuse(m_connection, "HGETALL");
    }
    Cancellations::Requests requests;
    for (std::size_t i = 0; i < reply.elements.size(); i += 2) {
        CancelRequest request{std::move(reply.elements[i + 1].text)};
        if (!request.over(queue.now())) {
            requests.emplace(std::move(reply.elements[i].text), std::move(request));
        }
    }
    queue.cancellations().replace(requests); // first: a job that begins from now on looks there
    if (requests.empty()) {
        return;
    }
    for (const auto& task : m_running(queue)) {
        std::vector<std::string> found;
        task->each_job([&](const JobRun& job) {
            if (requests.contains(job.id())) {
                found.push_back(job.id());
            }
        });
        for (const std::string& job_id : found) {
            if (const auto reason = queue.cancellations().reason_of(job_id)) {
                task->cancel(job_id, *reason);
            }
        }
    }
}

/// While Redis refuses that, they wait for the next look.
inline void QueueRequests::forget_ended(ServedQueue& queue) {
    const Cancellations::Requests ended = queue.cancellations().ended();
    if (ended.empty()) {
        return;
    }
    std::vector<std::string> arguments;
    for (const auto& [job_id, request] : ended) {
        arguments.push_back(job_id);
        arguments.push_back(request.value);
    }
    const std::string key = queue.keys().cancelled();
    try {
        m_connection.command(key, "EVAL", forget_cancels_script(), 1, key, arguments);
        queue.cancellations().forget(ended);
    } catch (const ReplyError& error) {
        if (!is_for_now(error)) {
            throw;
        }
    }
}

/// A user without the right to its requests goes without, and hears of that once.
inline void QueueRequests::leave_cancelling(ServedQueue& queue, const ReplyError& error) {
    m_uncancelled.insert(queue.queue());
    m_together = true; // that key may have been all that was in the way
    queue.cancellations().replace({});
    const std::string why = joined({"looking for jobs to cancel, from now on not: ", error.what()});
    queue.tell(WorkerEvent{.kind = WorkerEventKind::upkeep_failed, .detail = why});
}

/// True also when it is not known, because Redis does not answer for all queues at once.
inline bool QueueRequests::any_in(const ServedQueues& queues) {
    if (queues.empty()) { // jobs only recur here
        return false;
    }
    if (!m_together && queues.size() > 1) {
        return true;
    }
    std::vector<std::string> keys;
    for (const auto& queue : queues) {
        keys.push_back(queue->keys().paused());
        if (may_cancel(*queue)) {
            keys.push_back(queue->keys().cancelled());
        }
    }
    const std::optional<bool> any = any_exists(m_connection, keys);
    m_together = m_together && any.has_value();
    return any.value_or(true);
}

} // namespace orizuru::detail
