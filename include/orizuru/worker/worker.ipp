// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of worker.hpp that depend on no type of message.

#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/signals.hpp>
#include <orizuru/detail/worker/single_job_queue.hpp>
#include <orizuru/detail/worker/worker_checks.hpp>
#include <orizuru/detail/worker/worker_core.hpp>
#include <orizuru/detail/worker/worker_shutdown.hpp>

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <stdexcept>

namespace orizuru {

ORIZURU_INLINE Worker::Worker(Endpoint endpoint, WorkerOptions options)
    : m_endpoint(std::move(endpoint)), m_core(std::make_shared<detail::WorkerCore>()) {
    detail::validate(options);
    if (options.name != WorkerOptions().name) {
        detail::EndpointParts::of(m_endpoint).label =
            std::make_shared<const std::string>(options.name);
    }
    m_core->command_timeout = m_endpoint.command_timeout();
    m_core->shared = std::make_shared<detail::WorkerShared>(std::move(options));
}

ORIZURU_INLINE Keys Worker::checked(std::string queue) const {
    Keys keys(std::move(queue));
    if (m_started) {
        throw std::logic_error("queue '" + keys.source() + "': the worker runs already");
    }
    return keys;
}

/// The queue of this name, made if it is new.
ORIZURU_INLINE detail::SingleJobQueue& Worker::queue_of(Keys keys) {
    for (const auto& queue : m_core->queues) {
        if (queue->queue() == keys.source()) {
            if (auto* const single = dynamic_cast<detail::SingleJobQueue*>(queue.get())) {
                return *single;
            }
            throw std::invalid_argument("queue '" + keys.source() +
                                        "' is handled already, in batches, as a whole");
        }
    }
    const auto queue = std::make_shared<detail::SingleJobQueue>(m_core->shared, std::move(keys));
    m_core->queues.push_back(queue);
    return *queue;
}

ORIZURU_INLINE int Worker::run(std::stop_token token) {
    if (m_core->queues.empty()) {
        throw std::logic_error("a worker without a queue");
    }
    for (const auto& queue : m_core->queues) {
        const auto* const single = dynamic_cast<const detail::SingleJobQueue*>(queue.get());
        if (single != nullptr && !single->has_handler()) {
            throw std::logic_error("queue '" + queue->queue() + "' has no handler");
        }
    }
    if (m_started.exchange(true)) {
        throw std::logic_error("a worker runs once");
    }
    try {
        return run_once(std::move(token));
    } catch (...) {
        m_started = !m_core->ended();
        throw;
    }
}

ORIZURU_INLINE void Worker::run_and_exit(std::stop_token token) {
    if (run(std::move(token)) > 0) {
        std::_Exit(EXIT_FAILURE); // destructors would destroy what a handler uses
    }
}

ORIZURU_INLINE int Worker::run_once(std::stop_token token) {
    // The process may have forked since the constructor.
    m_core->wake.renew();
    m_core->shared->process = detail::ForkMark();
    const std::stop_callback stop_by_token(std::move(token), [this] { stop(); });
    std::optional<detail::Signals> listening;
    if (m_core->shared->options.signal_handling == SignalHandling::worker) {
        listening.emplace();
    }
    const detail::Signals* const heard = listening ? &*listening : nullptr;
    detail::WorkerShutdown ending(m_core);
    try {
        if (m_mode != Mode::stop) {
            m_core->open(m_endpoint);
            m_told_start = true;
            tell(WorkerEventKind::started);
        }
        await_stop(heard);
    } catch (...) {
        end(heard, ending);
        throw;
    }
    return end(heard, ending);
}

ORIZURU_INLINE void Worker::await_stop(const detail::Signals* heard) {
    bool quieted = false;
    while (m_mode != Mode::stop) {
        m_core->wake.clear();
        while (const auto signal = heard == nullptr ? std::nullopt : heard->next()) {
            if (*signal == SIGTTIN) {
                report();
            } else {
                *signal == SIGTSTP ? quiet() : stop();
            }
        }
        if (m_mode == Mode::quiet && !std::exchange(quieted, true)) {
            m_core->dispatcher->quiet();
            tell(WorkerEventKind::quieted);
        }
        if (m_mode != Mode::stop) {
            wait(heard, detail::TimePoint::max());
        }
    }
}

/// Returns how many threads have not ended.
ORIZURU_INLINE int Worker::end(const detail::Signals* heard, detail::WorkerShutdown& ending) {
    const detail::TimePoint deadline = detail::deadline_in(m_core->shared->options.stop_timeout);
    if (heard != nullptr) {
        heard->end_at_next();
    }
    ending.begin(deadline);
    if (std::exchange(m_told_start, false)) {
        tell(WorkerEventKind::stopping); // after begin: it may take its time
    }
    const detail::TimePoint latest = deadline + detail::WorkerCore::busy_patience;
    detail::TimePoint until = deadline + detail::WorkerCore::idle_patience;
    while (!m_core->closed) {
        if (const auto now = detail::Clock::now(); now >= until) {
            if (until == latest || m_core->pool.only_settles()) {
                break;
            }
            until = latest;
        }
        m_core->wake.clear();
        while (const auto signal = heard == nullptr ? std::nullopt : heard->next()) {
            if (*signal == SIGTTIN) {
                report();
            }
        }
        if (!m_core->closed) {
            wait(heard, until);
        }
    }
    m_core->pool.leave();
    m_core->settlers.leave();
    const auto on_threads = std::ranges::count_if(
        running(), [](const RunningJob& job) { return job.thread.has_value(); });
    return static_cast<int>(on_threads) + m_core->settlers.alive() + (m_core->closed ? 0 : 1);
}

ORIZURU_INLINE void Worker::wait(const detail::Signals* heard, detail::TimePoint deadline) const {
    detail::wait_ready(heard == nullptr ? -1 : heard->fd(), POLLIN, &m_core->wake, deadline);
}

ORIZURU_INLINE void Worker::report() {
    std::string text;
    for (const RunningJob& job : running()) {
        text += (text.empty() ? "" : "\n") + to_string(job);
    }
    tell(WorkerEventKind::report, text.empty() ? "no thread is busy" : text);
}

ORIZURU_INLINE void Worker::tell(WorkerEventKind kind, std::string_view detail) const noexcept {
    m_core->shared->events.tell({.kind = kind, .detail = detail});
}

ORIZURU_INLINE WorkerStatistics Worker::statistics() const {
    detail::CountRow sums{};
    for (const auto& queue : m_core->queues) {
        const detail::CountRow row = queue->counts().row();
        std::ranges::transform(sums, row, sums.begin(), std::plus<>());
    }
    return detail::statistics_of({}, sums).outcomes;
}

ORIZURU_INLINE std::vector<QueueStatistics> Worker::queue_statistics() const {
    std::vector<QueueStatistics> all;
    for (const auto& queue : m_core->queues) {
        all.push_back(detail::statistics_of(queue->queue(), queue->counts().row()));
    }
    return all;
}

ORIZURU_INLINE std::size_t Worker::threads() const { return m_core->pool.threads(); }

ORIZURU_INLINE void Worker::stop() noexcept {
    m_mode = Mode::stop;
    m_core->wake.signal();
}

ORIZURU_INLINE void Worker::quiet() noexcept {
    Mode expected = Mode::run;
    m_mode.compare_exchange_strong(expected, Mode::quiet);
    m_core->wake.signal();
}

ORIZURU_INLINE std::vector<RunningJob> Worker::running() const { return m_core->running(); }

ORIZURU_INLINE void Worker::check_middleware(const detail::JobHandling& handling,
                                             const std::string& queue) const {
    const WorkerOptions& options = m_core->shared->options;
    if (handling.end != detail::JobHandling::End::by_return && !options.handle_middleware.empty() &&
        options.handle_middleware_scope == HandleMiddlewareScope::all_handlers) {
        throw std::invalid_argument(
            "queue '" + queue +
            "': no HandleMiddleware can run around a handler with a JobDone; use "
            "WorkerOptions::observers, or HandleMiddlewareScope::blocking_handlers if it need not");
    }
}

ORIZURU_INLINE void Worker::add(std::string queue, QueueOptions options,
                                detail::JobHandling handling) {
    check_middleware(handling, queue);
    serve(queue, std::move(options));
    queue_of(Keys(std::move(queue))).add("", std::move(handling), {});
}

ORIZURU_INLINE void Worker::add_shards(const std::vector<std::string>& shards,
                                       const QueueOptions& options,
                                       const detail::JobHandling& handling) {
    const detail::FetchingQueues& queues = m_core->queues;
    for (const auto& queue : queues) {
        if (std::ranges::find(shards, queue->queue()) != shards.end()) {
            throw std::invalid_argument("queue '" + queue->queue() + "' is handled already");
        }
    }
    const auto before = std::ssize(queues);
    for (const std::string& shard : shards) {
        add(shard, options, handling);
    }
    m_core->shared->sharded.push_back({before, std::ssize(queues) - before});
}

ORIZURU_INLINE void Worker::add_kind(std::string queue, std::string kind, KindOptions options,
                                     detail::JobHandling handling) {
    Keys keys = checked(std::move(queue));
    const std::string whose = "queue '" + keys.source() + "', kind '" + kind + "'";
    if (kind.empty()) {
        throw std::invalid_argument("queue '" + keys.source() + "': a kind has 1 to 100 bytes");
    }
    detail::check_kind(kind);
    detail::validate(options, whose);
    check_middleware(handling, keys.source());
    if (!queue_of(std::move(keys)).add(std::move(kind), std::move(handling), std::move(options))) {
        throw std::invalid_argument(whose + " is handled already");
    }
}

ORIZURU_INLINE Worker& Worker::serve(std::string queue, QueueOptions options) {
    Keys keys = checked(std::move(queue));
    const std::string whose = "queue '" + keys.source() + "'";
    detail::validate(options, whose);
    if (!queue_of(std::move(keys)).choose(std::move(options))) {
        throw std::invalid_argument(whose + " is handled already, or has its options");
    }
    return *this;
}

ORIZURU_INLINE void Worker::add_chore(detail::AddedChore chore) {
    const Keys keys = checked(chore.queue);
    std::vector<detail::AddedChore>& chores = m_core->shared->added_chores;
    if (std::ranges::any_of(chores, [&](const detail::AddedChore& other) {
            return other.what == chore.what && other.queue == chore.queue;
        })) {
        throw std::invalid_argument("queue '" + keys.source() + "' has its recurrences already");
    }
    chores.push_back(std::move(chore));
}

} // namespace orizuru
