// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Shuts a worker down on a thread of its own, because requeuing waits for Redis and the handlers'
// stop callbacks may take long, while Worker::run returns in time. The thread starts before the
// worker does: a lack of threads may be the reason to shut down.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/worker/worker_core.hpp>

#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace orizuru::detail {

class WorkerShutdown {
  public:
    /// Marks the core as not closed. Throws std::system_error when the process can have no more
    /// threads.
    explicit WorkerShutdown(std::shared_ptr<WorkerCore> core)
        : m_core(std::move(core)),
          m_thread([core = m_core, begin = m_begin.get_future()]() mutable {
              core->close(begin.get());
          }) {
        m_core->closed = false;
    }
    WorkerShutdown(const WorkerShutdown&) = delete;
    WorkerShutdown& operator=(const WorkerShutdown&) = delete;
    /// Call begin() first. A thread that still waits goes on by itself.
    ~WorkerShutdown() { m_core->closed ? m_thread.join() : m_thread.detach(); }

    /// Begins the shutdown, once. Handlers have until `deadline`. The core signals its `wake` when
    /// it is closed.
    void begin(TimePoint deadline) { m_begin.set_value(deadline); }

  private:
    std::shared_ptr<WorkerCore> m_core;
    std::promise<TimePoint> m_begin;
    std::thread m_thread;
};

} // namespace orizuru::detail
