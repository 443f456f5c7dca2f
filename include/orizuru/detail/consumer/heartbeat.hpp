// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Runs the thread that keeps a consumer's lease: it beats three times per lease, on a connection
// that no handler can block. In between it does work that no caller waits for: it sends deferred
// acks that have waited for a third of the lease, adopts the list after a lost lease, and goes on
// with settlements that their callers have given up on.

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/stream.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace orizuru::detail {

class Heartbeat {
  public:
    Heartbeat(Lane& lane, const ConsumerOptions& options) : m_lane(lane), m_options(options) {}
    Heartbeat(const Heartbeat&) = delete;
    Heartbeat& operator=(const Heartbeat&) = delete;
    ~Heartbeat() { stop(); }

    /// Starts the thread. It keeps `owner`, which contains this object, alive until `stop`.
    void start(std::shared_ptr<const void> owner) {
        m_thread = std::make_unique<std::thread>(
            [this, owner = std::move(owner)]() mutable { run(std::move(owner)); });
    }

    [[gnu::cold]] void stop() noexcept {
        m_closing.store(true);
        m_stop_wake.signal();
        m_wake.signal();
        if (!m_thread) {
            return;
        }
        if (m_thread->get_id() == std::this_thread::get_id()) {
            m_thread->detach(); // the last guard died in a callback of this thread
        } else {
            m_thread->join();
        }
        m_thread.reset();
    }

    /// Wakes the thread for work that no caller waits for.
    void attend() const noexcept { m_wake.signal(); }

    /// For a forked child, where the thread does not exist.
    void forget_after_fork() noexcept {
        if (m_stream) {
            m_stream.release()->close_after_fork();
        }
        static_cast<void>(m_thread.release()); // can be neither joined nor detached
    }

  private:
    [[gnu::cold]] void run(std::shared_ptr<const void> owner) {
        TimePoint due = Clock::now() + m_options.lease / 3;
        while (!m_closing.load()) {
            wait_ready(-1, 0, &m_wake, due);
            m_wake.clear();
            if (m_closing.load()) {
                break;
            }
            try {
                if (Clock::now() >= due) {
                    due = beat_and_plan();
                }
                serve(due);
            } catch (const std::exception&) {
                // Out of memory, say. A consumer that stops beating would lose its messages.
                due = Clock::now() + m_backoff.next();
            }
        }
        // This may destroy the owner, and this object with it: touch neither afterwards.
        owner.reset();
    }

    TimePoint beat_and_plan() {
        const TimePoint begun = Clock::now();
        const std::chrono::milliseconds third = m_options.lease / 3;
        if (beat()) {
            m_backoff.reset();
            return begun + third;
        }
        return Clock::now() + std::min(third, m_backoff.next());
    }
    [[gnu::cold]] bool beat();
    [[gnu::cold]] void serve(TimePoint until);

    Lane& m_lane;
    const ConsumerOptions& m_options;
    Wake m_wake; ///< there is something to do
    Lane::Watch m_watch{m_lane, m_wake};
    Wake m_stop_wake; ///< ends a beat in flight
    std::atomic<bool> m_closing{false};
    JitteredPauses m_backoff;
    std::unique_ptr<Stream> m_stream;
    std::unique_ptr<std::thread> m_thread;
};

/// Returns false if Redis gave no valid answer.
inline bool Heartbeat::beat() {
    std::string id;
    std::string command;
    {
        const Lane::Lock lock(m_lane);
        if (!m_lane.running()) {
            return true;
        }
        id = m_lane.mirror().identity().id;
        const Keys& keys = m_lane.keys();
        append_command(command, "EVAL", beat_script(), 3, keys.heartbeat(id), keys.processing(id),
                       keys.consumers(), id, m_options.lease.count());
    }
    const TimePoint asked = Clock::now();
    // By then the lease is over, and the next attempt is due anyway.
    const TimePoint until =
        asked + std::min(m_lane.endpoint().command_timeout(), m_options.lease * 2 / 3);
    Reply reply;
    try {
        if (!m_stream) {
            m_stream = std::make_unique<Stream>(m_lane.endpoint(), until, &m_stop_wake);
        }
        m_stream->append([&](std::string& out) { out += command; });
        reply = m_stream->await_reply(until, &m_stop_wake);
    } catch (const std::exception&) {
        // It does not matter whether it ran: a beat can be repeated at any time.
        m_stream.reset();
        return false;
    }
    if (!reply.is(Reply::Type::integer)) {
        m_stream.reset();
        return false;
    }
    bool confirmed = false;
    {
        const Lane::Lock lock(m_lane);
        if (m_lane.mirror().identity().id != id || !m_lane.running()) {
            return true; // the answer is for an earlier incarnation
        }
        if (reply.integer == 1) {
            m_lane.confirm_lease(asked);
            confirmed = true;
        } else if (!m_lane.mirror().leaving()) {
            m_lane.begin_recovery(reply.integer == 0 ? "a collector has taken the consumer for dead"
                                                     : "Redis has lost the consumer's list");
        }
    }
    if (confirmed && m_options.on_beat) {
        try {
            m_options.on_beat();
        } catch (...) { // NOLINT(bugprone-empty-catch)
            // Exceptions are swallowed, as ConsumerOptions::on_beat says.
        }
    }
    return true;
}

inline void Heartbeat::serve(TimePoint until) {
    Lane::Lock lock(m_lane);
    const Mirror& mirror = m_lane.mirror();
    const Lane::HurriedAcks hurry(m_lane);
    m_lane.retry_refused();
    m_lane.drive(lock, until, &m_wake, [&] {
        const bool settled =
            mirror.state() == Mirror::State::running || mirror.state() == Mirror::State::left;
        return m_closing.load() ||
               (settled && !mirror.has_acks() && !mirror.has_moves() && !m_lane.has_unattended());
    });
}

} // namespace orizuru::detail
