// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A backlog that threads share, and its connection, which one thread at a time uses. That thread
// has the line: it connects, sends and takes Redis' answers. It waits without the lock, so that
// others can add messages meanwhile.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/producer/push_backlog.hpp>
#include <orizuru/detail/producer/push_pipeline.hpp>
#include <orizuru/detail/producer/replica_wait.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/endpoint.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace orizuru::detail {

/// Callers hold the owner's lock during all calls; calls that wait take the lock as an argument.
class PushLine {
  public:
    using Lock = PushBacklog::Lock;

    /// Connects.
    PushLine(const Endpoint& endpoint, const std::string& key, std::size_t most, ReplicaWait wait)
        : m_backlog(endpoint, key, most, std::move(wait)) {}

    [[nodiscard]] PushBacklog& backlog() noexcept { return m_backlog; }
    [[nodiscard]] const PushBacklog& backlog() const noexcept { return m_backlog; }
    [[nodiscard]] PushPipeline& pipeline() noexcept { return m_backlog.pipeline(); }
    [[nodiscard]] const PushPipeline& pipeline() const noexcept { return m_backlog.pipeline(); }

    [[nodiscard]] bool taken() const noexcept { return m_taken; }
    /// Takes the line, which must be free, until the returned object is destroyed.
    [[nodiscard]] auto take() noexcept {
        m_taken = true;
        return at_exit([this] {
            m_taken = false;
            if (m_waiting > 0) {
                m_free.notify_all();
            }
        });
    }
    /// Waits until the line is free; false when `limit` came first.
    [[nodiscard]] bool await(Lock& lock, TimePoint limit);

    // For the thread that has the line. The backlog notes every failure that these throw.

    /// Sends the waiting chunks; connects first when the connection is lost.
    void send(Lock& lock, TimePoint limit);
    /// Sends the waiting chunks when there is a connection.
    void send_if_connected();
    /// Takes an answer, or waits until `limit` for one or a part of it; nothing when none is owed.
    void hear(Lock& lock, TimePoint limit);
    /// Takes an answer or reads a part of it; false when nothing has arrived.
    bool hear_now(Lock& lock);
    /// LLEN, only when no answer is owed.
    std::uint64_t length(Lock& lock);

    /// Ends connecting, now and later. Any thread may call it, without the lock.
    void end_connecting() noexcept { m_end.signal(); }

  private:
    [[nodiscard]] bool lost() const {
        return pipeline().in_flight() == 0 && !pipeline().connected();
    }
    void connect(Lock& lock, TimePoint limit);

    PushBacklog m_backlog;
    bool m_taken = false;
    int m_waiting = 0; ///< threads that wait for the line
    std::condition_variable m_free;
    Wake m_end; ///< ends connecting
};

inline bool PushLine::await(Lock& lock, TimePoint limit) {
    ++m_waiting;
    const auto counted = at_exit([this] { --m_waiting; });
    return wait_until(m_free, lock, limit, [this] { return !m_taken; });
}

inline void PushLine::send(Lock& lock, TimePoint limit) {
    if (m_backlog.waiting() && lost()) {
        connect(lock, limit);
    }
    m_backlog.send(TimePoint());
}

inline void PushLine::send_if_connected() {
    if (!lost()) {
        m_backlog.send(TimePoint());
    }
}

inline void PushLine::hear(Lock& lock, TimePoint limit) {
    if (pipeline().in_flight() == 0 || m_backlog.take_answer(lock)) {
        return;
    }
    short ready = 0;
    {
        const Unlocked open(lock);
        ready = pipeline().await(limit);
    }
    m_backlog.read(ready);
}

inline bool PushLine::hear_now(Lock& lock) {
    if (m_backlog.take_answer(lock)) {
        return true;
    }
    const short ready = pipeline().await(TimePoint());
    m_backlog.read(ready);
    return ready != 0;
}

inline std::uint64_t PushLine::length(Lock& lock) {
    const Unlocked open(lock);
    return pipeline().length();
}

inline void PushLine::connect(Lock& lock, TimePoint limit) {
    const Endpoint& endpoint = pipeline().endpoint();
    std::unique_ptr<Stream> stream;
    try {
        const Unlocked open(lock);
        stream = Stream::make(endpoint, std::min(limit, deadline_in(endpoint.connect_timeout())),
                              &m_end);
    } catch (...) {
        m_backlog.note_failure();
        throw;
    }
    pipeline().adopt(std::move(stream));
}

} // namespace orizuru::detail
