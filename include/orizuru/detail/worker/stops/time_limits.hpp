// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The time limits of a worker's running handlers: one thread asks those to stop whose time is over.
// It cannot end them. The clock alone decides which of them were too slow: that thread may wait for
// a stop callback.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/worker/stops/linked_stop.hpp>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stop_token>
#include <utility>

namespace orizuru::detail {

class TimeLimits {
    using Runs = std::multimap<TimePoint, std::stop_source>; // by their deadlines

  public:
    /// The limit of one run, as long as it exists; for one thread at a time.
    class Limit {
      public:
        Limit(TimeLimits& limits, std::stop_token outer, std::chrono::milliseconds time)
            : m_limits(limits),
              m_stop(std::move(outer)),
              m_run(limits.add(deadline_in(time), m_stop.source())) {}
        Limit(const Limit&) = delete;
        Limit& operator=(const Limit&) = delete;
        ~Limit() { m_limits.remove(m_run); }

        /// A stop is requested on the thread inside `run` when the time is over, and when `outer`
        /// has one.
        [[nodiscard]] std::stop_source stop() const noexcept { return m_stop.source(); }
        [[nodiscard]] bool exceeded(TimePoint at) const noexcept { return at >= m_run->first; }

      private:
        TimeLimits& m_limits;
        LinkedStop m_stop;
        Runs::iterator m_run;
    };

    /// Asks handlers to stop in time, until `token` requests a stop. For one thread.
    void run(const std::stop_token& token);

  private:
    [[nodiscard]] Runs::iterator add(TimePoint deadline, std::stop_source stop) {
        const std::lock_guard lock(m_mutex);
        const auto run = m_runs.emplace(deadline, std::move(stop));
        if (deadline < next_deadline()) {
            m_next = run;
            m_news.notify_all();
        }
        return run;
    }
    void remove(Runs::iterator run) noexcept {
        const std::lock_guard lock(m_mutex);
        if (run == m_next) {
            ++m_next;
        }
        m_runs.erase(run);
    }
    [[nodiscard]] TimePoint next_deadline() const noexcept {
        return m_next == m_runs.end() ? TimePoint::max() : m_next->first;
    }

    std::mutex m_mutex; ///< guards what follows
    Runs m_runs;
    Runs::iterator m_next = m_runs.end(); ///< the first that was not told yet
    std::condition_variable_any m_news;
};

inline void TimeLimits::run(const std::stop_token& token) {
    std::unique_lock lock(m_mutex);
    while (!token.stop_requested()) {
        const TimePoint next = next_deadline();
        if (next > Clock::now()) {
            wait_until(m_news, lock, token, next, [&] { return next_deadline() < next; });
            continue;
        }
        std::stop_source stop = m_next++->second;
        const Unlocked open(lock); // the handler's stop callbacks may take long
        stop.request_stop();
    }
}

} // namespace orizuru::detail
