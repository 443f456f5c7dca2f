// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Ends a worker in a thread of its own: what is given back waits for Redis, handlers may have stop
// callbacks, and who stops a worker does not wait so long. The thread is there before it is needed,
// as it may be the lack of threads that ends the worker.

#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/worker/worker_core.hpp>

#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace orizuru::detail {

class WorkerEnd {
  public:
    /// The core is not closed from now on. Throws std::system_error when there can be no more
    /// threads.
    explicit WorkerEnd(std::shared_ptr<WorkerCore> core)
        : m_core(std::move(core)),
          m_thread([core = m_core, begin = m_begin.get_future()]() mutable {
              core->close(begin.get());
          }) {
        m_core->closed = false;
    }
    WorkerEnd(const WorkerEnd&) = delete;
    WorkerEnd& operator=(const WorkerEnd&) = delete;
    /// After begin(). A thread that still waits goes on by itself.
    ~WorkerEnd() { m_core->closed ? m_thread.join() : m_thread.detach(); }

    /// Once: `deadline` is that of the handlers. The core's `wake` is signalled when it is closed.
    void begin(TimePoint deadline) { m_begin.set_value(deadline); }

  private:
    std::shared_ptr<WorkerCore> m_core;
    std::promise<TimePoint> m_begin;
    std::thread m_thread;
};

} // namespace orizuru::detail
