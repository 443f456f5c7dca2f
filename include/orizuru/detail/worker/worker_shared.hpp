// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The state that all queues of a worker share: its options, the receiver of its events,
// what its jobs ask of Redis, and the request to stop.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/forked_child.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/detail/worker/stops/time_limits.hpp>
#include <orizuru/worker/worker_event.hpp>
#include <orizuru/worker/worker_options.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

class Connection;

} // namespace orizuru

namespace orizuru::detail {

class JobQueries;
class ProgressWriter;

/// Work that a user has added to the upkeep, for its thread and its connection.
struct AddedChore {
    std::string_view what;
    std::string queue;
    /// For each run; what it returns does a step, and returns when it is due again.
    std::function<std::function<TimePoint()>(std::shared_ptr<Connection>)> begin;
};

/// Never throws.
class WorkerEvents {
  public:
    /// `process` is the one that runs the worker, and outlives this.
    WorkerEvents(std::function<void(const WorkerEvent&)> on_event, const ForkMark& process)
        : m_on_event(std::move(on_event)), m_process(process) {}

    void tell(const WorkerEvent& event) const noexcept {
        if (m_on_event) {
            const EndOfForks end(m_process);
            try {
                m_on_event(event);
            } catch (...) { // NOLINT(bugprone-empty-catch)
            }
        }
    }
    /// Tells that upkeep failed, and when it is repeated.
    void tell_failed(std::string_view what, std::string_view queue, std::string_view why,
                     std::chrono::milliseconds retry_in) const noexcept {
        WorkerEvent event{.kind = WorkerEventKind::upkeep_failed,
                          .queue = queue,
                          .detail = why,
                          .retry_in = retry_in};
        std::string detail;
        try {
            detail = std::string(what) + ": " + std::string(why);
            event.detail = detail;
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
            // Without what failed, the reason is told all the same.
        }
        tell(event);
    }

  private:
    std::function<void(const WorkerEvent&)> m_on_event;
    const ForkMark& m_process;
};

/// Some queues of a worker, one after the other.
struct QueueRange {
    std::ptrdiff_t first;
    std::ptrdiff_t count;
};

struct WorkerShared {
    explicit WorkerShared(WorkerOptions chosen)
        : options(std::move(chosen)), events(options.on_event, process) {}

    const WorkerOptions options;
    ForkMark process; ///< the one that runs the worker; changes in Worker::run, before its threads
    const WorkerEvents events;
    TimeLimits time_limits;
    const std::shared_ptr<Trials> trials = std::make_shared<Trials>(); ///< for all queues
    std::vector<AddedChore> added_chores;                              ///< before the worker runs
    std::vector<QueueRange> sharded;          ///< for each sharded queue; before, too
    std::shared_ptr<JobQueries> queries;      ///< while the worker runs
    std::shared_ptr<JobQueries> forwards;     ///< to other slots, whose nodes hold up nothing else
    std::shared_ptr<ProgressWriter> progress; ///< then, too
    /// Tells the handlers that the worker stops.
    std::stop_source stop;
};

} // namespace orizuru::detail
